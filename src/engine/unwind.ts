/**
 * How a running job is left before its end: thrown through the job's code, which does not hold on to it. A job that
 * catches it anyway meets it again at its next step; what it returns then does not count.
 */
import type { FormSchema } from '../elicitation/form.ts';

/** Something that only a person can give, as the job met it. */
export type Want =
  | {
      readonly kind: 'authorize' | 'credential';
      readonly provider: string;
      readonly account: string;
      readonly connectionId: string;
      readonly scopes: readonly string[];
      readonly judgedGeneration: number | null;
      readonly forceConsent: boolean;
    }
  | { readonly kind: 'form'; readonly name: string; readonly schema: FormSchema; readonly message: string };

/** Why the job is left. */
export type Leave =
  | { readonly kind: 'stop'; readonly wants: readonly Want[] }
  | { readonly kind: 'park'; readonly delayMs: number; readonly why: 'trouble' | 'shutdown' }
  /** `timers` counts the sleeps since the checkpoint that are over when this one is. */
  | { readonly kind: 'park'; readonly delayMs: number; readonly why: 'timer'; readonly timers: number }
  /** The term is gone: cancelled, ended, taken over. */
  | { readonly kind: 'lost' };

/** Carries the reason through the job's code. */
export class Unwind extends Error {
  override readonly name = 'Unwind';
  readonly leave: Leave;

  constructor(leave: Leave) {
    super(`the job is left: ${leave.kind}`);
    this.leave = leave;
  }
}
