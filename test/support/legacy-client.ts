/** A client of the SDK for revisions with a handshake, with a person who answers as a test says. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  ElicitationCompleteNotificationSchema,
  ElicitRequestSchema,
  TaskStatusNotificationSchema,
  type ClientCapabilities,
  type ElicitRequest,
  type ElicitResult,
} from '@modelcontextprotocol/sdk/types.js';

/** Shows both modes. */
export const BOTH: ClientCapabilities = { elicitation: { form: {}, url: {} } };

/** What a client was asked. */
export type Asked = ElicitRequest['params'];

/** Connects a client. `answer` is the person; without one, questions stay open. */
export async function connectClient(
  url: URL,
  token: string,
  options: {
    capabilities?: ClientCapabilities;
    name?: string;
    answer?: (asked: Asked) => ElicitResult | Promise<ElicitResult>;
    fetch?: typeof fetch;
    sessionId?: string;
  } = {},
) {
  const capabilities = options.capabilities ?? BOTH;
  const client = new Client({ name: options.name ?? 'test-client', version: '1' }, { capabilities });
  const asked: Asked[] = [];
  const completed: string[] = [];
  const statuses: string[] = [];
  const waiting = new Set<() => void>();
  const wake = (): void => waiting.forEach((tell) => tell());
  if (capabilities.elicitation !== undefined) {
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
      asked.push(params);
      wake();
      if (options.answer !== undefined) return await options.answer(params);
      return await new Promise<ElicitResult>(() => undefined);
    });
  }
  client.setNotificationHandler(ElicitationCompleteNotificationSchema, ({ params }) => {
    completed.push(params.elicitationId);
    wake();
  });
  client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => {
    statuses.push(params.status);
    wake();
  });
  const transport = new StreamableHTTPClientTransport(url, {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 10,
      maxReconnectionDelay: 10,
      reconnectionDelayGrowFactor: 1,
    },
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
  });
  await client.connect(transport as Parameters<Client['connect']>[0]);
  return {
    client,
    transport,
    asked,
    completed,
    statuses,
    /** Waits until something has been heard that makes `holds` true. */
    async until(holds: () => boolean, withinMs = 5_000): Promise<void> {
      if (holds()) return;
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(check);
          reject(new Error('not heard in time'));
        }, withinMs);
        const check = (): void => {
          if (!holds()) return;
          clearTimeout(timer);
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
      });
    },
    close: () => client.close(),
  };
}
