/** `ingest_github_issues`: all issues of one repository, by GitHub's REST API and its `Link` headers. */
import type { JobDefinition } from '../engine/define.ts';
import type { Json } from '../store/records.ts';
import { definePagedIngest, type PagedSource } from './paged-source.ts';

export interface GithubIssues {
  /** Name of the provider in the configuration. */
  readonly provider: string;
  /** `owner/name`. */
  readonly repository: string;
  /** Default: `https://api.github.com`. */
  readonly apiUrl?: string;
  /** Default: `repo`. */
  readonly scopes?: readonly string[];
  readonly collection: string;
  readonly sink?: NonNullable<PagedSource['sink']>;
  /** Default: `ingest_github_issues`. */
  readonly name?: string;
}

function recordsOf(page: Json): { id: string; body: Json }[] {
  if (!Array.isArray(page)) return [];
  return page.flatMap((issue) => {
    const id = typeof issue === 'object' && issue !== null && !Array.isArray(issue) ? issue['id'] : undefined;
    return typeof id === 'number' ? [{ id: String(id), body: issue }] : [];
  });
}

/** Defines the job. */
export function defineGithubIssuesIngest(issues: GithubIssues): JobDefinition {
  const base = issues.apiUrl ?? 'https://api.github.com';
  return definePagedIngest({
    name: issues.name ?? 'ingest_github_issues',
    title: `Ingest the issues of ${issues.repository}`,
    description: `Ingests all issues of ${issues.repository}, open and closed, page by page.`,
    provider: issues.provider,
    scopes: issues.scopes ?? ['repo'],
    url: `${base}/repos/${issues.repository}/issues?state=all&per_page=100`,
    collection: issues.collection,
    pagination: { kind: 'link-header' },
    recordsOf,
    ...(issues.sink === undefined ? {} : { sink: issues.sink }),
  });
}
