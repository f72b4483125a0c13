/**
 * A piece of GitHub's REST API at Paperboat: the issues of `paperboat/harbour`, 1,000 of them, made here; and those of
 * `octokit-fixture-org/paginate-issues`, as GitHub once answered them (recorded in `@octokit/fixtures`).
 */

const RECORDED = /^\/api\/(repos\/octokit-fixture-org\/paginate-issues|repositories\/1000)\/issues$/;
const MADE = '/api/repos/paperboat/harbour/issues';
/** Issues of `paperboat/harbour`. */
export const ISSUE_COUNT = 1_000;

interface Page {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> | readonly unknown[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** Whether a path is one of the lists. */
export function issuesRoute(path: string): boolean {
  return path === MADE || RECORDED.test(path);
}

/** Ids of the made issues, in order of the list: newest first. */
export function issueIds(): number[] {
  return Array.from({ length: ISSUE_COUNT }, (_, index) => 5_000_000 + ISSUE_COUNT - index);
}

function issue(id: number): Record<string, unknown> {
  const number = id - 5_000_000;
  return {
    id,
    number,
    title: `Boat ${number} leaks`,
    state: number % 3 === 0 ? 'closed' : 'open',
    user: { login: 'harbour-master', id: 7 },
    labels: [],
    comments: number % 5,
    created_at: new Date(Date.UTC(2026, 0, 1) + number * 3_600_000).toISOString(),
  };
}

interface Recorded {
  readonly path: string;
  readonly status: number;
  readonly response: readonly unknown[];
  readonly headers: { readonly link?: string };
}

/** One page. `origin` is how the caller reached us: links lead back there. */
export async function issuesPage(url: URL, origin: string): Promise<Page> {
  if (url.pathname === MADE) return madePage(url, origin);
  const { default: fixture } = (await import(
    '@octokit/fixtures/scenarios/api.github.com/paginate-issues/normalized-fixture.json',
    { with: { type: 'json' } }
  )) as { default: readonly Recorded[] };
  const wanted = Number(url.searchParams.get('page') ?? '1');
  const page = fixture[wanted - 1];
  if (page === undefined) return { status: 404, body: { message: 'Not Found' } };
  const link = page.headers.link?.replaceAll('https://api.github.com', `${origin}/api`);
  return { status: page.status, body: page.response, ...(link === undefined ? {} : { headers: { link } }) };
}

function madePage(url: URL, origin: string): Page {
  const size = Number(url.searchParams.get('per_page') ?? '30');
  const page = Number(url.searchParams.get('page') ?? '1');
  if (!Number.isInteger(size) || size < 1 || size > 100 || !Number.isInteger(page) || page < 1) {
    return { status: 422, body: { message: 'per_page: 1 to 100; page: from 1' } };
  }
  const ids = issueIds().slice((page - 1) * size, page * size);
  const to = (number: number, rel: string): string => {
    const target = new URL(url.pathname + url.search, origin);
    target.searchParams.set('page', String(number));
    return `<${target.href}>; rel="${rel}"`;
  };
  const last = Math.ceil(ISSUE_COUNT / size);
  const links = [
    ...(page < last ? [to(page + 1, 'next'), to(last, 'last')] : []),
    ...(page > 1 ? [to(1, 'first'), to(page - 1, 'prev')] : []),
  ];
  return {
    status: 200,
    body: ids.map(issue),
    ...(links.length === 0 ? {} : { headers: { link: links.join(', ') } }),
  };
}
