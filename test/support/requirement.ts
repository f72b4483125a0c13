/**
 * A requirement of a specification, and the tests that prove it. The tables stand in `test/requirements*.ts`; a test fails
 * when a row names a test that does not exist, is skipped, or names none.
 */
import { readFileSync } from 'node:fs';

/** `file › title`: the file under `test/`, and the title as the source writes it between its quotes. */
export type Proof = `${string}.test.ts › ${string}`;

/** One sentence of a specification that binds a server, an authorization server's client or both. */
export interface Requirement {
  /** Unique over all tables. */
  readonly id: string;
  /** Document and section. */
  readonly source: string;
  readonly level: 'MUST' | 'MUST NOT' | 'SHOULD' | 'SHOULD NOT';
  /** In our own words. */
  readonly says: string;
  /** The tests; or why it cannot apply to us. */
  readonly provedBy: readonly [Proof, ...Proof[]] | { readonly doesNotApply: string };
}

const ROOT = new URL('../', import.meta.url);
const sources = new Map<string, string>();

/** What is wrong with a row; nothing when it is proven. */
export function flaw({ provedBy }: Requirement): string | undefined {
  if ('doesNotApply' in provedBy) return provedBy.doesNotApply.length > 20 ? undefined : 'no reason why not';
  for (const proof of provedBy) {
    const [file = '', title = ''] = proof.split(' › ');
    let source = sources.get(file);
    try {
      source ??= readFileSync(new URL(file, ROOT), 'utf8');
    } catch {
      return `no file ${file}`;
    }
    sources.set(file, source);
    const at = ["'", '`', '"']
      .map((quote) => source.indexOf(quote + title + quote))
      .find((index) => index >= 0);
    if (title === '' || at === undefined) return `no test "${title}" in ${file}`;
    if (/\.(skip|todo)\([^(]*$/.test(source.slice(Math.max(0, at - 60), at))) return `skipped: ${proof}`;
  }
  return undefined;
}
