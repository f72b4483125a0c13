/** Notes with the task that its end has reached the client, once that is so. */
import type { TaskSnapshot } from '../../engine/tasks.ts';
import type { Call } from './call.ts';
import type { LegacyParts } from './parts.ts';

export function noteDelivery(
  parts: Pick<LegacyParts, 'tasks'>,
  call: Pick<Call, 'whenDelivered'>,
  task: TaskSnapshot,
): void {
  call.whenDelivered({
    answer: task.status === 'completed' ? 'result' : 'failure',
    write: () => parts.tasks.delivered(task.taskId),
  });
}
