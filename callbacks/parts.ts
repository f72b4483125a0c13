/** What the pages work with. Built once in `app.ts`. */
import type { Engine } from '../src/engine/engine.ts';
import type { Meter } from '../src/engine/meter.ts';
import type { ProviderRegistry } from '../src/engine/providers.ts';
import type { AnyTool } from '../src/engine/define.ts';
import type { Log } from '../src/log.ts';
import type { Ledger } from '../src/store/ledger.ts';
import type { Keyring } from '../src/vault/keyring.ts';
import type { Site } from './pages/page.ts';
import type { IssuerClient } from './sign-in/issuer-client.ts';

export interface PageParts {
  readonly engine: Engine;
  readonly ledger: Ledger;
  readonly keyring: Keyring;
  readonly providers: ProviderRegistry;
  readonly tools: ReadonlyMap<string, AnyTool>;
  readonly issuer: IssuerClient;
  readonly site: Site;
  /** The one configured public URL, without a trailing slash (D14). */
  readonly publicUrl: string;
  readonly mcpUrl: string;
  /** Most requests of one address to the pages, in any minute (R29). */
  readonly pagesPerMinute: number;
  readonly log: Log;
  readonly meter: Meter;
  /** Wall clock; deadlines are the ledger's. */
  readonly wallMs: () => number;
}

/** A path on this server as browsers see it: with the prefix of the public URL, if there is one. */
export function pathOf(parts: Pick<PageParts, 'publicUrl'>, path: string): string {
  const prefix = new URL(parts.publicUrl).pathname.replace(/\/$/, '');
  return `${prefix}${path}`;
}
