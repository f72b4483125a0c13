/** What the scripted person reads off a page. */
import { describe, expect, it } from 'vitest';
import { readPage } from '../../src/sandbox/html-page.ts';
import { samplePages } from '../support/page-models.ts';

const read = (html: string) => readPage('http://127.0.0.1:3000/a/b?c=d', 200, html);

describe('a page', () => {
  it('has forms with the fields that a browser would send, and buttons apart', () => {
    const { forms, title } = read(`
      <title>A &amp; B</title>
      <form method="post" action="/next?x=1&amp;y=2" aria-label='quoted "inside"'>
        <input type="hidden" name="csrf" value="t&quot;&#39;&#x27;" />
        <input name=bare value=1>
        <input type="radio" name="account" value="one" checked />
        <input type="radio" name="account" value="two">
        <input type="checkbox" name="yes" checked><input type="checkbox" name="no">
        <input name="gone" value="1" disabled>
        <select name="pick"><option value="a">A</option><option value="b" selected>B</option></select>
        <textarea name="text">
two &lt;lines&gt;
here</textarea>
        <button name="action" value="continue">Go</button>
        <button type="button" name="action" value="nothing">No</button>
        <input type="submit" name="s">
      </form>
      <form><button>Search</button></form>`);
    expect(title).toBe('A & B');
    expect(forms).toEqual([
      {
        action: 'http://127.0.0.1:3000/next?x=1&y=2',
        method: 'POST',
        fields: [
          ['csrf', "t\"''"],
          ['bare', '1'],
          ['account', 'one'],
          ['yes', 'on'],
          ['pick', 'b'],
          ['text', 'two <lines>\nhere'],
        ],
        buttons: [
          { name: 'action', value: 'continue' },
          { name: 's', value: 'Submit' },
        ],
      },
      {
        action: 'http://127.0.0.1:3000/a/b?c=d',
        method: 'GET',
        fields: [],
        buttons: [{ name: '', value: '' }],
      },
    ]);
  });

  it('does not take comments, style or script for what it shows', () => {
    const { forms } = read(
      '<!-- <form><button>1</button></form> --><style><form></style><script>"<form>"</script>',
    );
    expect(forms).toEqual([]);
  });

  it('moves on only where it says so without a delay', () => {
    expect(read('<meta http-equiv="refresh" content="0;url=/on?a=1&amp;b=2" />').movesTo).toBe(
      'http://127.0.0.1:3000/on?a=1&b=2',
    );
    expect(read('<meta http-equiv="Refresh" content="0; URL=\'http://127.0.0.2/x\'">').movesTo).toBe(
      'http://127.0.0.2/x',
    );
    expect(read('<meta http-equiv="refresh" content="5;url=/later">').movesTo).toBeUndefined();
    expect(read('<meta name="refresh" content="0;url=/no">').movesTo).toBeUndefined();
  });
});

describe('the pages that a person meets', () => {
  it.each([
    ['sign-in-nobody', 'sign-in'],
    ['sign-in-stale', 'sign-in'],
    ['connect-first', 'continue'],
    ['connect-choose', 'continue'],
    ['connect-approve-client', 'approve'],
  ])('%s leads on with the button action=%s, in a form with its CSRF field', (name, value) => {
    const found = samplePages().find((sample) => sample.name === name);
    const { forms } = read(found?.html ?? '');
    const leading = forms.filter(({ buttons }) => buttons.some((button) => button.value === value));
    expect(leading).toHaveLength(1);
    expect(leading[0]).toMatchObject({
      method: 'POST',
      fields: expect.arrayContaining([['csrf', expect.any(String)]]),
    });
  });

  it('leaving moves on by itself', () => {
    const found = samplePages().find(({ name }) => name === 'leaving');
    expect(read(found?.html ?? '').movesTo).toContain('https://github.com/login/oauth/authorize?');
  });
});
