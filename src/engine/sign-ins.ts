/**
 * Sign-ins at providers, from *Continue* to the commit (R6, R7, D2). The pages check who is there and what came back;
 * here the attempt is started, taken exactly once, exchanged, sealed and committed. The exchange belongs to the
 * connection: neither the browser's socket nor the task's end interrupts it.
 */
import { createHash, randomBytes } from 'node:crypto';
import { isRefusal, Refusal, type Reason } from '../errors.ts';
import { unionScopes } from '../elicitation/scopes.ts';
import type { Log } from '../log.ts';
import type { ResponseCheck } from '../provider/authorization-response.ts';
import type { TokenSet } from '../provider/token-set.ts';
import { Secret, secret } from '../secret.ts';
import type { SecretsInUse } from '../secrets-in-use.ts';
import type { Asked, Granted } from '../store/attempts.ts';
import type { Ledger } from '../store/ledger.ts';
import type { Attempt } from '../store/records.ts';
import type { Keyring } from '../vault/keyring.ts';
import { openValue, sealValue } from '../vault/sealed-value.ts';
import type { Vault } from '../vault/vault.ts';
import type { Asking } from './asking.ts';
import type { GrantPlace, Grants } from './grants.ts';
import type { Meter } from './meter.ts';
import type { ProviderRegistry } from './providers.ts';
import type { EngineSettings } from './settings.ts';

/** What *Continue* gives the browser. */
export interface Departure {
  /** Where the browser goes next. */
  readonly authorizationUrl: URL;
  /** Goes into the per-attempt cookie and nowhere else. */
  readonly binding: Secret;
  readonly attemptId: string;
  readonly untilMs: number;
}

/** How an attempt ended, for the page. The ledger has recorded the same. */
export interface Arrival {
  readonly attempt: Attempt;
  readonly reason: Reason | 'granted';
  readonly granted: Granted | null;
}

/** SHA-256 of a secret text, base64url: what the ledger keeps of states, bindings and sessions. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

function random(bytes = 32): string {
  return randomBytes(bytes).toString('base64url');
}

/** How long a second callback waits for the exchange that is under way on its connection. */
const BUSY_FOR_MS = 15_000;

/** How soon a sign-in whose account could not be checked is tried again. */
const AGAIN_AFTER_MS = 5_000;

export function openSignIns(options: {
  ledger: Ledger;
  vault: Vault;
  keyring: Keyring;
  grants: Grants;
  providers: ProviderRegistry;
  asking: Asking;
  secrets: SecretsInUse;
  settings: EngineSettings;
  log: Log;
  meter: Meter;
  publicUrl: string;
}) {
  const { ledger, vault, keyring, grants, providers, asking, secrets, settings, log, meter } = options;
  const underWay = new Set<Promise<unknown>>();

  function track<T>(work: Promise<T>): Promise<T> {
    underWay.add(work);
    void work.catch(() => undefined).finally(() => underWay.delete(work));
    return work;
  }

  async function newAttempt(
    asked: Asked,
    made: { state: string; verifier: string; nonce: string | null; binding: string; issuer: string },
    by: { sessionHash: string; anyAccount: boolean; tenant: Readonly<Record<string, string>> },
  ): Promise<Attempt> {
    const { elicitation } = asked;
    if (elicitation.connectionId === null || elicitation.provider === null) throw new Refusal('link_unknown');
    const stateHash = hashOf(made.state);
    const fresh = {
      stateHash,
      id: random(12),
      elicitationId: elicitation.id,
      taskId: elicitation.taskId,
      connectionId: elicitation.connectionId,
      owner: elicitation.owner,
      provider: elicitation.provider,
      sealedVerifier: await sealValue(keyring, 'attempts', made.verifier, {
        expiresAtMs: elicitation.deadlineMs,
        context: [stateHash],
      }),
      nonce: made.nonce,
      redirectUri: redirectUri(elicitation.provider),
      issuer: made.issuer,
      bindingHash: hashOf(made.binding),
      sessionHash: by.sessionHash,
      scopes: elicitation.scopes,
      tenant: by.tenant,
      anyAccount: by.anyAccount,
      recordKey: vault.reserveKey(),
    };
    const begun = await ledger.beginAttempt(fresh);
    if (begun === 'too many') throw new Refusal('too_many_attempts');
    if (begun === 'over') throw new Refusal('link_over');
    const attempt = await ledger.findAttempt(stateHash);
    if (attempt === undefined) throw new Error('an attempt that was just written cannot be read');
    return attempt;
  }

  function redirectUri(provider: string): string {
    return `${options.publicUrl}/callback/${provider}`;
  }

  function placeOf(attempt: Attempt, kind: 'tokens' | 'credential'): GrantPlace {
    return {
      recordKey: attempt.recordKey,
      owner: attempt.owner,
      provider: attempt.provider,
      connectionId: attempt.connectionId,
      // A record of an attempt is bound to the attempt's own place in time, not to a generation that others may take.
      generation: attempt.startedAtMs,
      kind,
    };
  }

  async function refuse(
    attempt: Attempt,
    reason: Reason,
    more: Partial<Parameters<Ledger['refuseAttempt']>[0]> = {},
  ): Promise<Arrival> {
    await ledger.refuseAttempt({ stateHash: attempt.stateHash, reason, ...more });
    meter.count('exchange', { outcome: reason });
    return { attempt, reason, granted: null };
  }

  /** The operator's matter: no link can help, so the task ends (D8). */
  function misconfigured(attempt: Attempt): Promise<Arrival> {
    log.error('provider.misconfigured', { provider: attempt.provider });
    return refuse(attempt, 'provider_misconfigured', {
      ends: {
        reason: 'provider_misconfigured',
        statusMessage: "The provider rejected this server's own registration. Tell its operator.",
      },
    });
  }

  async function take(stateHash: string): Promise<{ attempt: Attempt } | Arrival> {
    const giveUpAt = performance.now() + BUSY_FOR_MS;
    for (;;) {
      const taking = await ledger.takeAttempt({
        stateHash,
        holder: settings.holder,
        leaseMs: settings.exchangeLeaseMs,
      });
      switch (taking?.kind) {
        case undefined:
          throw new Refusal('state_unknown');
        case 'taken':
          return { attempt: taking.attempt };
        case 'used':
          return settled(taking.attempt);
        case 'over':
          meter.count('exchange', { outcome: taking.reason });
          return { attempt: taking.attempt, reason: taking.reason, granted: null };
        case 'satisfied':
          meter.count('exchange', { outcome: 'satisfied' });
          return { attempt: taking.attempt, reason: 'granted', granted: null };
        case 'busy':
          if (performance.now() > giveUpAt) throw new Refusal('provider_unavailable');
          await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  /** The recorded outcome of an attempt that was delivered before; waits a little for one that is under way. */
  async function settled(attempt: Attempt): Promise<Arrival> {
    const giveUpAt = performance.now() + BUSY_FOR_MS;
    for (let current = attempt; ;) {
      if (current.outcome !== null) {
        return { attempt: current, reason: current.outcome.reason as Arrival['reason'], granted: null };
      }
      if (performance.now() > giveUpAt) return { attempt: current, reason: 'state_used', granted: null };
      await new Promise((resolve) => setTimeout(resolve, 100));
      current = (await ledger.findAttempt(attempt.stateHash)) ?? current;
    }
  }

  async function exchange(attempt: Attempt, code: string, params: URLSearchParams): Promise<Arrival> {
    const provider = providers.get(attempt.provider);
    const verifier = await openValue(keyring, 'attempts', attempt.sealedVerifier, {
      nowMs: await ledger.nowMs(),
      context: [attempt.stateHash],
    });
    if (typeof verifier !== 'string') return refuse(attempt, 'link_over');
    let tokens: TokenSet;
    try {
      tokens = await provider.exchange({
        code: secret(code),
        codeVerifier: secret(verifier),
        redirectUri: attempt.redirectUri,
        nonce: attempt.nonce ?? undefined,
        params,
        tenant: attempt.tenant,
      });
    } catch (error) {
      if (!isRefusal(error)) {
        await refuse(attempt, 'answer_malformed', { phase: 'lost' });
        throw error;
      }
      log.warn('exchange.failed', { provider: attempt.provider, taskId: attempt.taskId, error });
      if (error.reason === 'provider_misconfigured') return misconfigured(attempt);
      // A code that may have been used is never sent again.
      const lost = error.reason === 'provider_unavailable' && error.facts['sent'] !== false;
      return refuse(attempt, error.reason, lost ? { phase: 'lost' } : {});
    }
    return keep(attempt, tokens, 'tokens');
  }

  /** From here on the answer is sealed, and any node can finish. */
  async function keep(attempt: Attempt, tokens: TokenSet, kind: 'tokens' | 'credential'): Promise<Arrival> {
    secrets.add(tokens.accessToken);
    if (tokens.refreshToken !== undefined) secrets.add(tokens.refreshToken);
    const place = placeOf(attempt, kind);
    const sealed = await grants.seal(place, tokens);
    const grant = grants.describe(place, tokens, sealed, { subject: null, label: null }, attempt.scopes);
    if (!(await ledger.markExchanged(attempt.stateHash, settings.holder, grant))) {
      const now = (await ledger.findAttempt(attempt.stateHash)) ?? attempt;
      await forgetFenced(now, tokens);
      return settled(now);
    }
    return finish({ ...attempt, sealed: grant }, tokens);
  }

  /** Account check and commit of an attempt that is `exchanged`. */
  async function finish(attempt: Attempt, tokens: TokenSet): Promise<Arrival> {
    const provider = providers.get(attempt.provider);
    const connection = await ledger.readConnection(attempt.connectionId);
    const before = connection?.record?.subject ?? null;
    let account: { subject: string; label?: string | undefined } | undefined;
    try {
      account = await provider.identity(tokens);
    } catch (error) {
      log.warn('identity.failed', { provider: attempt.provider, error });
      // Without the check another account could slip in: the sweeper tries again while the deadline lasts.
      const mayDefer = before !== null && attempt.sealed?.kind === 'tokens';
      if (mayDefer && isRefusal(error, 'provider_unavailable')) {
        if ((await ledger.nowMs()) < attempt.deadlineMs) {
          await ledger.deferAttempt(attempt.stateHash, settings.holder, AGAIN_AFTER_MS);
          throw error;
        }
        return refuse(attempt, 'attempt_lost', { phase: 'lost' });
      }
      // A typed key is good only if the provider says so; a key that it refuses is the person's to correct.
      if (attempt.sealed?.kind === 'credential') {
        return refuse(attempt, isRefusal(error) ? error.reason : 'answer_malformed');
      }
      if (before !== null) return refuse(attempt, 'answer_malformed');
    }
    if (before !== null && account !== undefined && account.subject !== before && !attempt.anyAccount) {
      await forgetToken(attempt, tokens, account.subject);
      return refuse(attempt, 'account_mismatch');
    }
    if (attempt.sealed === null) return refuse(attempt, 'link_over', { phase: 'lost' });
    const grant = {
      ...attempt.sealed,
      subject: account?.subject ?? before,
      subjectLabel: account?.label ?? null,
    };
    const elicitation = (await askedOf(attempt))?.elicitation;
    const again =
      elicitation === undefined ? null : { ...(await asking.newLink()), message: elicitation.message };
    const granted = await ledger.commitGrant({ stateHash: attempt.stateHash, grant, again });
    if (granted.kind === 'used') {
      await forgetFenced((await ledger.findAttempt(attempt.stateHash)) ?? attempt, tokens);
      return settled(attempt);
    }
    // A newer or wider token is in force already.
    if (!granted.taken) await forgetToken(attempt, tokens, grant.subject);
    meter.count('exchange', { outcome: granted.kind });
    if (elicitation !== undefined && granted.resumed.length > 0) {
      meter.time('wait', (await ledger.nowMs()) - elicitation.createdAtMs, {});
    }
    return { attempt, reason: granted.kind === 'short' ? 'insufficient_scope' : 'granted', granted };
  }

  /** Finishes an attempt that another holder left behind. */
  async function takeOver(attempt: Attempt): Promise<void> {
    const place = placeOf(attempt, attempt.sealed?.kind ?? 'tokens');
    const found = await grants.recover(place);
    if (found === undefined) {
      await refuse(attempt, 'attempt_lost', { phase: 'lost' });
      return;
    }
    const account = { subject: null, label: null };
    const grant = grants.describe(place, found.tokens, found, account, attempt.scopes);
    if (attempt.phase === 'exchanging') {
      await ledger.markExchanged(attempt.stateHash, settings.holder, grant);
    }
    await finish({ ...attempt, sealed: grant }, found.tokens);
  }

  async function askedOf(attempt: Attempt): Promise<Asked | undefined> {
    return ledger.findQuestion(attempt.elicitationId);
  }

  /**
   * An answer that came when its attempt was over: the connection was ended meanwhile, or the attempt was given up. In
   * every other end another holder has dealt with this very answer, and it may be the one in force.
   */
  async function forgetFenced(attempt: Attempt, tokens: TokenSet): Promise<void> {
    if (attempt.outcome?.reason === 'attempt_lost') await forgetToken(attempt, tokens, null);
  }

  /** Revokes a token that is not kept, only where that ends this token alone (R5). */
  async function forgetToken(attempt: Attempt, tokens: TokenSet, subject: string | null): Promise<void> {
    const provider = providers.get(attempt.provider);
    const alone =
      provider.revocationScope === 'token' ||
      (subject !== null && !(await ledger.accountInUse(attempt.provider, subject)));
    if (!alone) return;
    await provider.revoke(tokens).catch((error: unknown) => log.warn('revocation.failed', { error }));
  }

  return {
    redirectUri,

    /**
     * *Continue*: starts an attempt of its own state, PKCE verifier and nonce.
     *
     * @throws Refusal `too_many_attempts`, `link_over`, `provider_unavailable`, `provider_misconfigured`.
     */
    async depart(
      asked: Asked,
      by: { sessionHash: string; anyAccount: boolean; tenant: Readonly<Record<string, string>> },
    ): Promise<Departure> {
      const { elicitation } = asked;
      const provider = providers.get(elicitation.provider ?? '');
      const connection = await ledger.readConnection(elicitation.connectionId ?? '');
      const made = {
        state: random(),
        verifier: random(),
        nonce: provider.usesNonce ? random() : null,
        binding: random(),
        issuer: provider.issuer,
      };
      secrets.add(secret(made.state));
      secrets.add(secret(made.verifier));
      const attempt = await newAttempt(asked, made, by);
      const authorizationUrl = await provider.authorizationRequest({
        state: made.state,
        codeChallenge: createHash('sha256').update(made.verifier).digest('base64url'),
        ...(made.nonce === null ? {} : { nonce: made.nonce }),
        redirectUri: attempt.redirectUri,
        scopes: unionScopes(elicitation.scopes, []),
        // The first binding of an account is a choice, never a habit (R9).
        forceConsent: elicitation.forceConsent || (connection?.generation ?? 0) === 0,
        tenant: by.tenant,
      });
      return {
        authorizationUrl,
        binding: secret(made.binding),
        attemptId: attempt.id,
        untilMs: attempt.deadlineMs,
      };
    },

    /**
     * The authorization response, after the pages' checks: takes the attempt exactly once, then redeems the code. A
     * second delivery sees the recorded outcome.
     */
    arrive(attempt: Attempt, response: ResponseCheck, params: URLSearchParams): Promise<Arrival> {
      return track(
        (async (): Promise<Arrival> => {
          const taken = await take(attempt.stateHash);
          if ('reason' in taken) return taken;
          if (response.kind === 'code') return exchange(taken.attempt, response.code, params);
          log.warn('authorization.refused', {
            provider: attempt.provider,
            taskId: attempt.taskId,
            code: response.error,
          });
          switch (response.verdict) {
            case 'denied':
              return refuse(taken.attempt, 'access_denied', {
                ends: {
                  reason: 'access_denied',
                  statusMessage: 'Access was denied at the provider. Start the task again to be asked again.',
                },
              });
            case 'misconfigured':
              return misconfigured(taken.attempt);
            case 'temporary':
              return refuse(taken.attempt, 'provider_unavailable');
          }
        })(),
      );
    },

    /** A key that the person typed into our own page: checked by a call where the provider has one, then stored. */
    submitCredential(
      asked: Asked,
      fields: Readonly<Record<string, Secret>>,
      sessionHash: string,
    ): Promise<Arrival> {
      return track(
        (async (): Promise<Arrival> => {
          const provider = providers.get(asked.elicitation.provider ?? '');
          const tokens = provider.credential(fields);
          const state = random();
          const made = { state, verifier: random(), nonce: null, binding: random(), issuer: provider.issuer };
          const attempt = await newAttempt(asked, made, { sessionHash, anyAccount: false, tenant: {} });
          const taken = await take(attempt.stateHash);
          if ('reason' in taken) return taken;
          return keep(taken.attempt, tokens, 'credential');
        })(),
      );
    },

    /** Finishes attempts whose holder vanished: sealed ones are committed, the others are lost (R6). */
    async finishAttempts(): Promise<number> {
      const stale = await ledger.staleAttempts(settings.sweepBatch);
      for (const attempt of stale) {
        if (!(await ledger.adoptAttempt(attempt.stateHash, settings.holder, settings.exchangeLeaseMs)))
          continue;
        // One that cannot be finished now keeps no other from its end; its lease brings it back.
        await track(takeOver(attempt)).catch((error: unknown) =>
          log.warn('attempt.unfinished', { provider: attempt.provider, taskId: attempt.taskId, error }),
        );
      }
      return stale.length;
    },

    /** Resolves when no exchange is under way: shutdown waits for it (R1). */
    async idle(): Promise<void> {
      await Promise.allSettled(underWay);
    },
  };
}
