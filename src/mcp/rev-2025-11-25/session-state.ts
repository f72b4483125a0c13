/** What one session remembers between its requests. All of it may be lost without losing a task. */
import type { FirstQuestions } from './first-questions.ts';
import type { Followed } from './followed.ts';
import type { Given } from './given.ts';

export interface SessionState {
  readonly given: Given;
  readonly followed: Followed;
  readonly first: FirstQuestions;
}
