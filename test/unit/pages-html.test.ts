import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { attributes, html, localPath, trustedHtml, webUrl } from '../../callbacks/pages/html.ts';
import { shown } from '../../callbacks/pages/shown.ts';

describe('the html template', () => {
  test('text and attribute values never add markup', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (value) => {
        const text = /^<p>([^<>"'`]*)<\/p>$/.exec(html`<p>${value}</p>`.toString());
        const attribute = /^<p title="([^<>"'`]*)"><\/p>$/.exec(html`<p title="${value}"></p>`.toString());
        expect(text).not.toBeNull();
        expect(attribute?.[1]).toBe(text?.[1]);
      }),
    );
  });

  test('what a browser reads back is the value', () => {
    expect(html`<p>${`<b> & "it's" \`x\``}</p>`.toString()).toBe(
      '<p>&lt;b&gt; &amp; &quot;it&#39;s&quot; &#96;x&#96;</p>',
    );
  });

  test('markup from another template is kept, lists are joined, undefined is nothing', () => {
    const parts = [html`<i>1</i>`, ' & ', html`<i>2</i>`];
    expect(html`<p>${parts}${undefined}</p>`.toString()).toBe('<p><i>1</i> &amp; <i>2</i></p>');
    expect(html`<p>${trustedHtml('<hr>')}</p>`.toString()).toBe('<p><hr></p>');
  });

  test('an object that only looks like markup is refused', () => {
    expect(() => html`<p>${{ toString: () => '<b>' } as never}</p>`).toThrow('Text takes');
  });

  test('a URL attribute takes only a checked URL', () => {
    expect(html`<a href="${localPath('/a?b=1&c=2')}">x</a>`.toString()).toBe(
      '<a href="/a?b=1&amp;c=2">x</a>',
    );
    expect(() => html`<a href="${'javascript:alert(1)'}">x</a>`).toThrow('only a checked URL');
    expect(() => html`<form action="${'/a'}"></form>`).toThrow('only a checked URL');
    expect(() => html`<button formaction="${'/a'}"></button>`).toThrow('only a checked URL');
    expect(() => html`<meta content="0;url=${'https://a.example'}" />`).toThrow('only a checked URL');
    expect(() => html`<a href="/x/${localPath('/a')}">x</a>`).toThrow('whole value');
  });

  test('places that cannot be made safe take no value', () => {
    const value = 'x';
    expect(() => html`<p onclick="${value}"></p>`).toThrow('takes no value');
    expect(() => html`<p style="${value}"></p>`).toThrow('takes no value');
    expect(() => html`<iframe srcdoc="${value}"></iframe>`).toThrow('no script, style, frame');
    expect(
      () =>
        html`<script>
          ${value};
        </script>`,
    ).toThrow('no script, style, frame');
    expect(
      () =>
        html`<style>
          ${value}
        </style>`,
    ).toThrow('no script, style, frame');
    expect(() => html`<!-- ${value} -->`).toThrow('no script, style, frame');
    // Prettier would mend what these templates get wrong, so they are called as functions.
    const call = (...parts: string[]) => html(Object.assign(parts, { raw: parts }), value);
    expect(() => call('<p title=', '></p>')).toThrow('double quotes');
    expect(() => call("<p title='", "'></p>")).toThrow('double quotes');
    expect(() => call('<', '></p>')).toThrow('tag name');
    expect(() => call('</', '>')).toThrow('tag name');
    expect(() => call('<p ', '></p>')).toThrow('Between attributes');
    expect(() => call('<p title="', '"')).toThrow('ends outside');
  });

  test('attributes from a record are escaped; handlers, styles and URLs are refused', () => {
    const set = attributes({
      required: true,
      checked: false,
      'aria-label': '"><x',
      maxlength: 3,
      id: undefined,
    });
    expect(html`<input${set} />`.toString()).toBe(
      '<input required aria-label="&quot;&gt;&lt;x" maxlength="3" />',
    );
    for (const name of ['onclick', 'style', 'href', 'srcdoc', 'a b', 'x"', 'ON']) {
      expect(() => attributes({ [name]: 'x' })).toThrow('cannot be set');
    }
  });

  test('controls, overrides, zero-width fillers and lone surrogates do not reach the page', () => {
    const value = 'a\u0000\u001B\u0085\u202E\u2066\u200B\u200F\u00AD\uFEFF\u{E0041}\u2028b\uD800c';
    expect(html`<p title="${value}">${value}</p>`.toString()).toBe('<p title="ab\uFFFDc">ab\uFFFDc</p>');
  });
});

describe('URLs', () => {
  test('a local path stays on this origin', () => {
    for (const path of [
      '//evil.example',
      '/\\evil.example',
      'https://evil.example',
      'a',
      '',
      '/a\n',
      '/\t/b',
      '/a b',
    ]) {
      expect(() => localPath(path), path).toThrow('single slash');
    }
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 20 }), (value) => {
        let accepted = true;
        try {
          localPath(`/${value}`);
        } catch {
          accepted = false;
        }
        if (accepted)
          expect(new URL(`/${value}`, 'https://here.example').origin).toBe('https://here.example');
      }),
    );
  });

  test('a web address is https, or http on loopback, and carries no credentials', () => {
    for (const url of [
      'https://a.example/x',
      'http://127.0.0.1:8080/',
      'http://localhost/',
      'http://[::1]:1/',
    ]) {
      expect(() => webUrl(url), url).not.toThrow();
    }
    for (const url of [
      'javascript:alert(1)',
      'data:text/html,x',
      'http://a.example/',
      'http://localhost.evil.example/',
      'https://github.com@evil.example/',
      '/local',
    ]) {
      expect(() => webUrl(url), url).toThrow(TypeError);
    }
  });
});

describe('a foreign name', () => {
  test('of ordinary kind is unchanged', () => {
    for (const name of ['Claude Desktop', 'Zoë', 'Å', '日本語', 'O’Brien & Co.', '👩‍💻 team', 'नमस्ते']) {
      expect(shown(name)).toBe(name);
    }
  });

  test('that is long is cut at a whole character', () => {
    expect(shown('x'.repeat(81))).toBe(`${'x'.repeat(80)}…`);
    expect(shown('x'.repeat(80))).toBe('x'.repeat(80));
    expect(shown('👩‍💻'.repeat(5), 3)).toBe(`${'👩‍💻'.repeat(3)}…`);
    expect(shown('x'.repeat(1_000_000), 10)).toBe(`${'x'.repeat(10)}…`);
  });

  test('that runs from right to left is isolated from the words around it', () => {
    expect(shown('עברית')).toBe('\u2068עברית\u2069');
    expect(shown('\u2069עברית\u2068')).toBe('\u2068עברית\u2069');
  });

  test('with nothing to see becomes a question mark', () => {
    for (const name of ['', '   ', '\u200B\u200D', '\u3164', '\u2800', '\u202E', '\u0301']) {
      expect(shown(name), JSON.stringify(name)).toBe('?');
    }
  });

  test('keeps no heap of marks and no invisible character', () => {
    expect(shown(`a${'\u0301'.repeat(50)}b`)).toBe(`a${'\u0301'.repeat(4)}b`);
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 200 }),
        fc.integer({ min: 1, max: 100 }),
        (value, max) => {
          const name = shown(value, max);
          expect(name.length).toBeGreaterThan(0);
          expect(name.isWellFormed()).toBe(true);
          expect(name.replace(/^\u2068(.*)\u2069$/u, '$1')).not.toMatch(
            /[\p{Cc}\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F\uFEFF]/u,
          );
          expect([...new Intl.Segmenter('en').segment(name)].length).toBeLessThanOrEqual(max + 3);
        },
      ),
    );
  });
});
