/** The people who exist in the sandbox. They have no passwords: on loopback, choosing is enough. */

/** Somebody who can sign in at a server of the sandbox. */
export interface Account {
  /** Subject identifier at that server. */
  readonly id: string;
  readonly name: string;
  readonly email: string;
}

/** People of the MCP server's own issuer. */
export const ISSUER_ACCOUNTS: readonly Account[] = [
  { id: 'alice', name: 'Alice', email: 'alice@example.com' },
  { id: 'bob', name: 'Bob', email: 'bob@example.com' },
];

/** Accounts at Paperboat: another site, so other names for the same people. */
export const PAPERBOAT_ACCOUNTS: readonly Account[] = [
  { id: 'alice@paperboat', name: 'Alice', email: 'alice@paperboat.example' },
  { id: 'bob@paperboat', name: 'Bob', email: 'bob@paperboat.example' },
];
