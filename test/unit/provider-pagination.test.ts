import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { nextPage } from '../../src/provider/pagination.ts';
import { presetProfile } from '../support/preset-profile.ts';

interface Recorded {
  readonly scope: string;
  readonly path: string;
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly response: unknown;
}

function next(preset: string, url: string, body: unknown, headers: Record<string, string> = {}) {
  return nextPage(presetProfile(preset).api.pagination, { url, body, headers: new Headers(headers) });
}

describe('GitHub, as recorded', () => {
  test('five pages of issues are followed to their end, each once', () => {
    const place = 'scenarios/api.github.com/paginate-issues/normalized-fixture.json';
    const file = new URL(place, import.meta.resolve('@octokit/fixtures'));
    const recorded = JSON.parse(readFileSync(file, 'utf8')) as Recorded[];
    const seen: string[] = [];
    let url: string | undefined = `https://api.github.com${recorded[0]?.path}`;
    while (url !== undefined) {
      const at: string = url;
      const page = recorded.find((one) => `https://api.github.com${one.path}` === at);
      expect(page, at).toBeDefined();
      seen.push(at);
      url = next('github', at, page?.response, page?.headers);
    }
    expect(seen).toHaveLength(5);
    expect(new Set(seen).size).toBe(5);
  });
});

describe('the next page', () => {
  test.each([
    [
      'notion',
      'https://api.notion.com/v1/users?page_size=2',
      { next_cursor: 'c 2', has_more: true },
      'https://api.notion.com/v1/users?page_size=2&start_cursor=c+2',
    ],
    [
      'slack',
      'https://slack.com/api/x?limit=2&cursor=a',
      { response_metadata: { next_cursor: 'b=' } },
      'https://slack.com/api/x?limit=2&cursor=b%3D',
    ],
    [
      'google',
      'https://www.googleapis.com/drive/v3/files',
      { nextPageToken: 't' },
      'https://www.googleapis.com/drive/v3/files?pageToken=t',
    ],
    [
      'hubspot',
      'https://api.hubapi.com/crm/v3/objects/contacts',
      { paging: { next: { after: '2' } } },
      'https://api.hubapi.com/crm/v3/objects/contacts?after=2',
    ],
    [
      'salesforce',
      'https://acme.my.salesforce.com/services/data/v1/query',
      { nextRecordsUrl: '/services/data/v1/query/2' },
      'https://acme.my.salesforce.com/services/data/v1/query/2',
    ],
    [
      'microsoft',
      'https://graph.microsoft.com/v1.0/users',
      { '@odata.nextLink': 'https://graph.microsoft.com/v1.0/users?$skiptoken=1' },
      'https://graph.microsoft.com/v1.0/users?$skiptoken=1',
    ],
    [
      'stripe',
      'https://api.stripe.com/v1/charges?limit=2&starting_after=ch_0',
      { data: [{ id: 'ch_1' }, { id: 'ch_2' }], has_more: true },
      'https://api.stripe.com/v1/charges?limit=2&starting_after=ch_2',
    ],
    [
      'atlassian',
      'https://api.atlassian.com/ex/jira/1/rest/api/3/search/jql?jql=x',
      { issues: [], nextPageToken: 't' },
      'https://api.atlassian.com/ex/jira/1/rest/api/3/search/jql?jql=x&nextPageToken=t',
    ],
    [
      'asana',
      'https://app.asana.com/api/1.0/tasks?limit=2',
      { data: [], next_page: { offset: 'o', path: '/tasks' } },
      'https://app.asana.com/api/1.0/tasks?limit=2&offset=o',
    ],
    [
      'airtable',
      'https://api.airtable.com/v0/app/table',
      { records: [], offset: 'itr/rec' },
      'https://api.airtable.com/v0/app/table?offset=itr%2Frec',
    ],
    [
      'box',
      'https://api.box.com/2.0/folders/0/items?usemarker=true',
      { entries: [], next_marker: 'm' },
      'https://api.box.com/2.0/folders/0/items?usemarker=true&marker=m',
    ],
    [
      'zoom',
      'https://api.zoom.us/v2/users',
      { next_page_token: 'n' },
      'https://api.zoom.us/v2/users?next_page_token=n',
    ],
    [
      'calendly',
      'https://api.calendly.com/scheduled_events',
      { pagination: { next_page: 'https://api.calendly.com/scheduled_events?page_token=p' } },
      'https://api.calendly.com/scheduled_events?page_token=p',
    ],
    [
      'zendesk',
      'https://acme.zendesk.com/api/v2/tickets?page[size]=2',
      { links: { next: 'https://acme.zendesk.com/api/v2/tickets?page[after]=a' } },
      'https://acme.zendesk.com/api/v2/tickets?page[after]=a',
    ],
    [
      'figma',
      'https://api.figma.com/v1/files/x/versions',
      { pagination: { next_page: 'https://api.figma.com/v1/files/x/versions?before=1' } },
      'https://api.figma.com/v1/files/x/versions?before=1',
    ],
  ])('%s: is found where the profile says', (preset, url, body, expected) => {
    expect(next(preset, url, body)).toBe(expected);
  });

  test.each([
    ['notion', { next_cursor: 'c', has_more: false }],
    ['notion', { next_cursor: null, has_more: true }],
    ['slack', { response_metadata: { next_cursor: '' } }],
    ['spotify', { next: null }],
    ['github', {}],
    ['xero', {}],
    ['box', { entries: [] }],
    ['stripe', { data: [{ id: 'ch_1' }], has_more: false }],
    ['stripe', { data: [], has_more: true }],
    ['stripe', { data: 'none', has_more: true }],
    ['zoom', { next_page_token: '' }],
    ['calendly', { pagination: { next_page: null } }],
    ['asana', { next_page: null }],
  ])('%s: %j is the last one', (preset, body) => {
    expect(next(preset, 'https://api.example/list', body)).toBeUndefined();
  });

  test.each([
    'https://evil.example/2',
    '//evil.example/2',
    'http://api.spotify.com/v1/2',
    'https://x@api.spotify.com/2',
    'https://',
  ])('is not %s, another place than the one that was read', (target) => {
    expect(() => next('spotify', 'https://api.spotify.com/v1/x', { next: target })).toThrow(
      expect.objectContaining({ reason: 'egress_forbidden' }),
    );
    expect(() =>
      next('github', 'https://api.spotify.com/v1/x', {}, { link: `<${target}>; rel="next"` }),
    ).toThrow(expect.objectContaining({ reason: 'egress_forbidden' }));
  });

  test('is not the page itself again', () => {
    const url = 'https://api.spotify.com/v1/x?offset=1';
    expect(next('spotify', url, { next: url })).toBeUndefined();
  });

  test.each([
    ['<https://api.github.com/2>; rel=next', 'https://api.github.com/2'],
    [
      '<https://api.github.com/1>; rel="prev", <https://api.github.com/3>; title="x"; rel="last next"',
      'https://api.github.com/3',
    ],
    ['<https://api.github.com/1>; rel="nextish"', undefined],
    ['nonsense', undefined],
  ])('Link: %s is read by RFC 8288', (link, expected) => {
    expect(next('github', 'https://api.github.com/1', {}, { link })).toBe(expected);
  });
});
