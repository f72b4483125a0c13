import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { connectPage } from '../../callbacks/pages/connect.ts';
import { connectionsPage } from '../../callbacks/pages/connections.ts';
import { credentialPage } from '../../callbacks/pages/credential.ts';
import { disconnectPage } from '../../callbacks/pages/disconnect.ts';
import { donePage } from '../../callbacks/pages/done.ts';
import { ACTIONS } from '../../callbacks/pages/form.ts';
import { leavingPage } from '../../callbacks/pages/leaving.ts';
import { refusedPage, refusedStatus, refusedVariant } from '../../callbacks/pages/refused.ts';
import { signInPage } from '../../callbacks/pages/sign-in.ts';
import { REFUSED_VARIANTS, texts } from '../../callbacks/texts.ts';
import { REASONS, type Reason } from '../../src/errors.ts';
import {
  AUTHORIZATION_URL,
  connectModel,
  connectionsModel,
  credentialModel,
  DEADLINE_MS,
  disconnectModel,
  NOW_MS,
  refusedModel,
  samplePages,
  signInModel,
  site,
} from '../support/page-models.ts';

/** Reads a document by the strict grammar that the template produces; anything else is a failure. */
function structure(document: string): { shape: string[]; text: string } {
  const shape: string[] = [];
  const aside = /<style>[^<]*<\/style>|<!doctype html>/;
  const tag = /<(\/?[a-z][a-z0-9]*)((?:\s+[a-zA-Z-]+(?:="[^"<>]*")?)*)\s*\/?>/;
  const token = new RegExp(`${aside.source}|${tag.source}|([^<>]+)`, 'gy');
  let text = '';
  let end = 0;
  for (const match of document.matchAll(token)) {
    end = match.index + match[0].length;
    if (match[1] !== undefined) {
      const names = [...(match[2] ?? '').matchAll(/\s([a-zA-Z-]+)(?:="[^"]*")?/g)].map(([, name]) => name);
      shape.push([match[1], ...names].join(' '));
    }
    text += match[3] ?? (match[1] === '/li' ? ' ' : '');
  }
  expect(document.slice(end, end + 80)).toBe('');
  return { shape, text };
}

/** What a person reads, white space made even. */
function read(document: string): string {
  return structure(document)
    .text.replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replace(/\s+/g, ' ');
}

const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onfocus='alert(1)' autofocus='",
  '</title></style><svg onload=alert(1)>',
  '`${alert(1)}`',
  '&lt;b&gt;&#60;',
  '-->',
  'javascript:alert(1)',
  '\u202Egnp.exe',
  '\u2066\u2067\u2069\u2068',
  '\u0000\u0008\u001B[31m',
  'W'.repeat(5_000),
  `Z${'\u0301'.repeat(500)}`,
  'العربية',
  '',
];

describe('every page', () => {
  const shapes = samplePages().map(({ html }) => structure(html).shape);

  test('keeps its tags and attributes whatever the names in it are', () => {
    const hostile = fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: 'binary', maxLength: 40 }));
    fc.assert(
      fc.property(fc.array(hostile, { minLength: 1, maxLength: 12 }), (words) => {
        let next = 0;
        const pages = samplePages(() => words[next++ % words.length] ?? '');
        pages.forEach(({ html }, index) => {
          const { shape } = structure(html);
          expect(shape).toEqual(shapes[index]);
          expect(html.replace(/[\t\n]/g, '')).not.toMatch(
            /\p{Cc}|[\u202A-\u202E\u2066\u2067\u200B\u200E\u200F]/u,
          );
          expect(html.match(/\u2068/gu)?.length).toBe(html.match(/\u2069/gu)?.length);
        });
      }),
      { numRuns: 60 },
    );
  });

  test.each(samplePages())('$name has a language, one title, one h1, landmarks and no script', ({ html }) => {
    const { shape } = structure(html);
    expect(html).toContain('<html lang="en">');
    expect(html).toMatch(/<title>[^<]+ – Northwind Ingest<\/title>/);
    for (const tag of ['title', 'h1', 'header', 'main', 'footer']) {
      expect(
        shape.filter((element) => element.split(' ')[0] === tag),
        tag,
      ).toHaveLength(1);
    }
    expect(shape.filter((element) => /^script|^iframe|\bon[a-z]+\b|\bstyle /.test(element))).toEqual([]);
    expect(html).not.toMatch(/(?:src|href)="https?:\/\/(?!github\.com\/login\/|support\.example\.com\/)/);
  });

  test.each(samplePages())(
    '$name sends forms only by POST, with the CSRF field, to this server',
    ({ html }) => {
      const forms = html.match(/<form[^]*?<\/form>/g) ?? [];
      for (const form of forms) {
        expect(form).toMatch(/^<form\s+method="post"\s+action="\/[^/"]/);
        expect(form).toContain('<input type="hidden" name="csrf" value="csrf-value-1" />');
      }
      const buttons = [...html.matchAll(/<button[^>]*>/g)].map(([tag]) => tag);
      expect(buttons.every((tag) => tag.includes('name="action"'))).toBe(true);
      const values = buttons.map((tag) => /value="([^"]*)"/.exec(tag)?.[1]);
      expect(values.filter((value) => !(ACTIONS as readonly (string | undefined)[]).includes(value))).toEqual(
        [],
      );
    },
  );

  test('has a title of its own', () => {
    const titles = samplePages().map(({ html }) => /<title>([^<]*)<\/title>/.exec(html)?.[1]);
    expect(new Set(titles).size).toBeGreaterThan(REFUSED_VARIANTS.length + 10);
  });
});

describe('the connect page', () => {
  const model = connectModel();
  const page = connectPage(model);

  test('says who asks, for what, as whom, and what happens next', () => {
    const text = read(page);
    expect(text).toContain('Connect your GitHub account');
    expect(text).toContain('A task you started, “Import issues”, has stopped.');
    expect(text).toContain('Claude Desktop not verified');
    expect(text).toContain('https://claude.example/oauth/client.json');
    expect(text).toContain('alice@example.com');
    expect(text).toContain('You go to github.com and sign in there.');
    expect(text).toContain('You come back here, to Northwind Ingest.');
    expect(text).toContain('The agent never sees your password');
  });

  test('shows each permission in words with its raw name beside it', () => {
    const text = read(page);
    expect(text).toContain('See which organisations you belong to read:org');
    expect(text).toContain('only its name: workflow');
    expect(read(connectPage({ ...model, scopes: [] }))).toContain('GitHub does not name single permissions');
  });

  test('says how long the link works, for people and for machines', () => {
    expect(page).toContain('<time datetime="2026-11-30T14:05:00Z">30 November 2026 at 14:05 UTC</time>');
    expect(read(page)).toContain('14:05 UTC (in 11 minutes).');
    const over = read(connectPage({ ...model, nowMs: DEADLINE_MS }));
    expect(over).toContain('This link worked until');
    expect(over).not.toContain('This link works until');
  });

  test('offers Continue, Not now and Not you, and nothing else', () => {
    expect([...page.matchAll(/name="action"\s+value="([^"]*)"/g)].map(([, value]) => value)).toEqual([
      'switch-person',
      'continue',
      'decline',
    ]);
  });

  test('marks an app without a name as such, and still as not verified', () => {
    const text = read(connectPage({ ...model, client: { id: 'c1' } }));
    expect(text).toContain('An app without a name not verified');
  });

  test('marks new permissions on a step-up and asks for the same account', () => {
    const text = read(
      connectPage({
        ...model,
        reason: { kind: 'step-up', account: 'alice-dev' },
        scopes: [{ name: 'admin:org', words: 'Manage organisations', isNew: true }, { name: 'repo' }],
      }),
    );
    expect(text).toContain('Allow more access to GitHub');
    expect(text).toContain('Manage organisations New admin:org');
    expect(text.match(/ New /g)).toHaveLength(1);
    expect(text).toContain('the same account as before: alice-dev');
  });

  test('offers another account after an ended sign-in only where one is acceptable', () => {
    const bound = connectPage({
      ...model,
      reason: { kind: 'signed-out', account: 'alice-dev', mayChange: false },
    });
    expect(bound).not.toContain('value="other"');
    expect(read(bound)).toContain('the same account as before: alice-dev');
    const free = connectPage({
      ...model,
      reason: { kind: 'signed-out', account: 'alice-dev', mayChange: true },
    });
    expect(free).toMatch(/value="same"[^>]*checked/);
    expect(free).toContain('value="other"');
  });

  test('asks to approve another app without going to the provider', () => {
    const approve = connectPage({ ...model, reason: { kind: 'approve-client', account: 'alice-dev' } });
    expect(approve).toContain('value="approve"');
    expect(approve).not.toContain('value="continue"');
    expect(read(approve)).not.toContain('You go to');
  });

  test('lists several accounts with the first one chosen', () => {
    const accounts = [
      { id: 'con_1', label: 'alice-dev' },
      { id: 'con_2', label: 'alice-ops' },
    ];
    const choose = connectPage({ ...model, reason: { kind: 'choose', accounts, mayAdd: false } });
    const radios = [...choose.matchAll(/<input\s+type="radio"[^>]*>/g)].map(([tag]) => tag);
    expect(radios.map((tag) => [/value="([^"]*)"/.exec(tag)?.[1], tag.includes('checked')])).toEqual([
      ['con_1', true],
      ['con_2', false],
    ]);
  });
});

describe('the sign-in page', () => {
  test('tells nothing about the task behind the link', () => {
    const text = read(signInPage(signInModel()));
    expect(text).toContain('please sign in to Northwind Ingest first');
    expect(text).toContain('You sign in at login.northwind.example');
    expect(text).not.toMatch(/GitHub|Import issues|alice/);
  });

  test('for a sign-in that is too old says who is signed in and offers somebody else', () => {
    const page = signInPage({ ...signInModel(), why: 'stale', person: 'alice@example.com' });
    expect(read(page)).toContain('more than 10 minutes ago');
    expect(read(page)).toContain('You are signed in as alice@example.com.');
    expect(page).toContain('value="switch-person"');
  });
});

describe('the leaving page', () => {
  test('goes on at once, with a link as fallback, and names the host of the address itself', () => {
    const page = leavingPage({ site: site(), url: AUTHORIZATION_URL, providerName: 'GitHub' });
    const escaped = AUTHORIZATION_URL.replaceAll('&', '&amp;');
    expect(page).toContain(`<meta http-equiv="refresh" content="0;url=${escaped}" />`);
    expect(page).toContain(`href="${escaped}"`);
    expect(read(page)).toContain('Your browser goes on to github.com.');
  });

  test('refuses an address that is not of the web', () => {
    for (const url of ['javascript:alert(1)', 'http://github.com/x', 'https://github.com@evil.example/']) {
      expect(() => leavingPage({ site: site(), url, providerName: 'GitHub' })).toThrow(TypeError);
    }
  });
});

describe('the done page', () => {
  const model = { site: site(), providerName: 'GitHub', account: 'alice-dev' };

  test('says that the task goes on, and how many others', () => {
    const text = read(donePage({ ...model, variant: 'connected', alsoWoken: 2 }));
    expect(text).toContain('Done. Return to your chat');
    expect(text).toContain('GitHub is connected with the account alice-dev.');
    expect(text).toContain('2 more tasks');
    expect(read(donePage({ ...model, variant: 'connected', alsoWoken: 1 }))).toContain('One more task');
    expect(read(donePage({ ...model, variant: 'connected' }))).not.toContain('more task');
  });

  test('says both when the grant is kept but the task was over', () => {
    const text = read(donePage({ ...model, variant: 'late' }));
    expect(text).toContain('GitHub is connected with the account alice-dev.');
    expect(text).toContain('had already ended and does not go on');
  });
});

describe('the refusal page', () => {
  test.each(Object.keys(REASONS) as Reason[])('%s has a page with its own words', (reason) => {
    const variant = refusedVariant(reason);
    const text = read(refusedPage(refusedModel(variant)));
    expect(text.length).toBeGreaterThan(80);
    expect(text).not.toContain(REASONS[reason]);
    expect(text).not.toContain(reason);
    expect(refusedStatus(variant)).toBeGreaterThanOrEqual(200);
  });

  test('every variant can be met', () => {
    const met = new Set((Object.keys(REASONS) as Reason[]).map((reason) => refusedVariant(reason)));
    met.add(refusedVariant('link_over', { over: 'cancelled' }));
    met.add(refusedVariant('link_over', { over: 'ended' }));
    expect([...met].sort()).toEqual([...REFUSED_VARIANTS].sort());
  });

  test('link_over says why it is over', () => {
    expect(refusedVariant('link_over')).toBe('expired');
    expect(refusedVariant('link_over', { over: 'deadline' })).toBe('expired');
    expect(refusedVariant('link_over', { over: 'cancelled' })).toBe('cancelled');
    expect(refusedVariant('link_over', { over: 'ended' })).toBe('task-ended');
  });

  test('does not tell the wrong person whose task it is, nor what it is about', () => {
    const page = refusedPage(refusedModel('wrong-person'));
    expect(read(page)).not.toMatch(/GitHub|alice|Import|read:org|30 November/);
    expect(read(page)).toContain('The link still works for its owner.');
    expect(page).toContain('value="switch-person"');
    expect(page).not.toContain('value="retry"');
  });

  test('is the same for an unknown link whatever the model holds', () => {
    expect(refusedPage(refusedModel('link-unknown'))).toBe(
      refusedPage({ site: site(), variant: 'link-unknown' }),
    );
  });

  test('names the missing permission', () => {
    expect(read(refusedPage(refusedModel('permission-missing')))).toContain(
      'Missing See which organisations you belong to read:org',
    );
  });

  test('for the wrong account names both accounts and says that nothing was stored', () => {
    const text = read(refusedPage(refusedModel('wrong-account')));
    expect(text).toContain(
      'You signed in to GitHub as alice-private. This task needs the account alice-dev.',
    );
    expect(text).toContain('Nothing was stored.');
  });

  test.each(REFUSED_VARIANTS)('%s renders from nothing but the variant', (variant) => {
    const page = refusedPage({ site: site(), variant });
    expect(page).not.toContain('undefined');
    expect(page).not.toContain('<button');
    expect(page).toMatch(/<h1>[A-Z]/);
  });

  test.each(REFUSED_VARIANTS)('%s offers to try again only where that can help', (variant) => {
    const helps = ['provider-trouble', 'wrong-account', 'permission-missing', 'attempt-lost', 'storage-busy'];
    expect(refusedPage(refusedModel(variant)).includes('value="retry"')).toBe(helps.includes(variant));
  });

  test('for an internal error shows the number of the event and no detail', () => {
    const text = read(refusedPage(refusedModel('internal')));
    expect(text).toContain('give this number: 7F3K-29QD');
    expect(text).not.toContain('GitHub');
  });
});

describe('the credential page', () => {
  const model = credentialModel();

  test('hides secrets while they are typed and lets no browser keep them', () => {
    const page = credentialPage(model);
    expect(page).toMatch(/<input[^>]*name="key"[^>]*type="password"[^>]*autocomplete="off"/);
    expect(page.match(/autocomplete="off"/g)).toHaveLength(3);
  });

  test('never has a value in a field', () => {
    for (const [tag] of credentialPage(model).matchAll(/<input\s+id="field-[^>]*>/g)) {
      expect(tag).not.toMatch(/\svalue=/);
    }
  });

  test('links each error and hint to its field', () => {
    const page = credentialPage({
      ...model,
      fields: model.fields.map((field) => ({ ...field, error: `Wrong: ${field.name}` })),
    });
    expect(page).toContain('aria-describedby="field-key-error field-key-hint"');
    expect(page).toContain('aria-describedby="field-note-error"');
    expect(page.match(/aria-invalid="true"/g)).toHaveLength(3);
    expect(page.match(/\sautofocus/g)).toHaveLength(1);
    expect(read(page)).toContain('3 fields need your attention');
  });

  test('refuses a field name that could reach outside of its attribute', () => {
    expect(() =>
      credentialPage({ ...model, fields: [{ name: 'a b', label: 'x', kind: 'text', maxLength: 1 }] }),
    ).toThrow('field name');
  });
});

describe('my connections', () => {
  test('shows provider, account, permissions, dates, apps and waiting tasks', () => {
    const text = read(connectionsPage(connectionsModel()));
    for (const part of [
      'GitHub alice-dev Needs sign-in',
      'See which organisations you belong to read:org',
      'Connected 21 October 2026',
      'Last used 30 November 2026 at 12:53 UTC',
      'Claude Desktop Visual Studio Code',
      'Import issues, until 30 November 2026 at 14:05 UTC (in 11 minutes) Answer',
      'Last used not yet',
      'To withdraw the permission itself, visit the settings of your Asana account.',
    ]) {
      expect(text).toContain(part);
    }
  });

  test('offers to disconnect what is connected, each by its id', () => {
    const page = connectionsPage(connectionsModel());
    expect([...page.matchAll(/name="connection"\s+value="([^"]*)"/g)].map(([, id]) => id)).toEqual([
      'con_1',
      'con_2',
    ]);
    expect(page).toContain('aria-label="Disconnect GitHub, alice-dev"');
  });

  test('says how connections come about when there are none', () => {
    const text = read(connectionsPage({ ...connectionsModel(), connections: [] }));
    expect(text).toContain('You have no connections');
    expect(text).toContain('you get a link in your chat');
  });

  test('asks before it disconnects, and says what the provider keeps', () => {
    const revoke = disconnectPage(disconnectModel());
    expect(revoke).toContain('value="confirm-disconnect"');
    expect(read(revoke)).toContain('revoked at GitHub');
    expect(read(revoke)).toContain('Import issues and Nightly sync');
    const forget = read(disconnectPage({ ...disconnectModel(), ending: 'forget' }));
    expect(forget).toContain('GitHub cannot revoke this key alone');
    expect(forget).not.toContain('revoked at GitHub');
  });
});

describe('time in words', () => {
  test.each([
    [DEADLINE_MS - NOW_MS, 'in 11 minutes'],
    [0, 'now over'],
    [-1, 'now over'],
    [1, 'in less than a minute'],
    [59_999, 'in less than a minute'],
    [60_000, 'in 1 minute'],
    [119 * 60_000, 'in 119 minutes'],
    [120 * 60_000, 'in 2 hours'],
    [47 * 3_600_000, 'in 47 hours'],
    [48 * 3_600_000, 'in 2 days'],
  ])('%i ms are "%s"', (ms, words) => {
    expect(texts.left(ms)).toBe(words);
  });
});
