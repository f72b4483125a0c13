/**
 * What an answer of the client does to a wait (D3, D4). Pure: one table.
 *
 * `accept` of a link means that the person agreed to open it; nothing is finished by it. A decline or a cancel of a
 * re-ask never ends a wait that an earlier accept keeps alive. Whatever is not one of the three actions is ignored.
 */
import type { ElicitationKind } from './kind.ts';

/** What the ledger does with it. */
export type AnswerEffect =
  /** Note it: the key is not listed any more, the wait goes on. */
  | 'note'
  /** The form's content arrived and is good: this ask is finished. */
  | 'finish'
  /** End the task as declined. */
  | 'decline'
  /** End the task as cancelled. */
  | 'cancel'
  /** Change nothing. */
  | 'ignore';

/** What `tasks/cancel`-like dismissal of an ask does: end the task, or leave the wait as it is. */
export type CancelPolicy = 'cancel' | 'wait';

/** The facts that decide. */
export interface AnswerInputs {
  readonly kind: ElicitationKind;
  readonly action: unknown;
  /** Whether the key is still open: asked, not answered, not finished. */
  readonly open: boolean;
  /** Whether an earlier ask of the same need was accepted. */
  readonly acceptedBefore: boolean;
  readonly onCancel: CancelPolicy;
}

/** Decides. */
export function answerEffect(inputs: AnswerInputs): AnswerEffect {
  if (!inputs.open) return 'ignore';
  switch (inputs.action) {
    case 'accept':
      return inputs.kind === 'form' ? 'finish' : 'note';
    case 'decline':
      return inputs.acceptedBefore ? 'note' : 'decline';
    case 'cancel':
      if (inputs.acceptedBefore) return 'note';
      return inputs.onCancel === 'cancel' ? 'cancel' : 'ignore';
    default:
      return 'ignore';
  }
}
