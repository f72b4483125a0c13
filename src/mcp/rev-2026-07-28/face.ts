/**
 * The face of revision 2026-07-28: stateless, everything in each request. The checks stand in the order in which their
 * errors take precedence; nothing is looked up before the last of them.
 */
import type { FastifyReply } from 'fastify';
import { isRefusal } from '../../errors.ts';
import type { Declared } from '../../engine/caller.ts';
import type { Tasks } from '../../engine/tasks.ts';
import type { Log } from '../../log.ts';
import type { Catalogue } from '../catalogue.ts';
import { NO_DELIVERY, textLinkAllowed, type Delivery } from '../delivery.ts';
import type { ModernFace } from '../endpoint.ts';
import {
  errorText,
  METHOD_NOT_FOUND,
  resultText,
  resultTextOf,
  type RpcId,
  type WireError,
} from '../json-rpc.ts';
import { BUG, wireError } from '../wire-error.ts';
import { callTool, type CallParts } from './call.ts';
import type { Reach } from './detailed-task.ts';
import { isWireError, missingTasks, readEnvelope, versionProblem } from './envelope.ts';
import { LISTEN_SETTINGS, openListening, type ListenSettings } from './listen.ts';
import { headerMismatch, headerMissing } from './routing-headers.ts';
import type { StateSeal } from './request-state.ts';
import { SERVER_METHODS, serveRequest, type ServerInfo } from './server.ts';
import { isTaskMethod, readTask, taskMethod } from './task-methods.ts';
import { openTaskTexts } from './task-texts.ts';
import { watchAnswer } from './answer-watch.ts';

/** What the face is made of. */
export interface Face2026Options {
  readonly tasks: Tasks;
  readonly catalogue: Catalogue;
  readonly seal: StateSeal;
  readonly info: ServerInfo;
  /** Replaces secrets in use within a text that leaves (D15). */
  readonly scrub: (text: string) => string;
  readonly log: Log;
  readonly wallMs: () => number;
  /** Monotonic. */
  readonly nowMs: () => number;
  /** How long one request of a multi round-trip waits; 50 s by default. */
  readonly legMs?: number;
  readonly listen?: Partial<ListenSettings>;
  /** Other ways for links than URL mode; none by default (D9). */
  readonly delivery?: Delivery;
}

/** Clients give a request 60 s; a leg ends before. */
const LEG_MS = 50_000;
const ASK_MS = 30 * 60_000;

/** Opens the face. */
export function openFace2026(options: Face2026Options): ModernFace {
  const { tasks, catalogue, info, scrub, log } = options;
  const { instructions: _unused, ...serverInfo } = info;
  const delivery = options.delivery ?? NO_DELIVERY;
  const reachOf = ({ modes, clientName }: Declared): Reach => ({
    ...modes,
    linksAsText: !modes.url && textLinkAllowed(delivery, clientName),
  });
  const resultMeta = { 'io.modelcontextprotocol/serverInfo': serverInfo };
  const listening = openListening({
    ...options,
    settings: { ...LISTEN_SETTINGS, ...options.listen },
    resultMeta,
    reachOf,
  });
  // A poll is answered with a text that was made, and searched for secrets, when the task last changed.
  const taskTexts = openTaskTexts((fields) =>
    scrub(JSON.stringify({ resultType: 'complete', ...fields, _meta: resultMeta })),
  );
  const closing = new AbortController();
  const callParts: CallParts = { ...options, legMs: options.legMs ?? LEG_MS, askMs: ASK_MS, reachOf };

  const send = (reply: FastifyReply, status: number, text: string): void => {
    reply.code(status).header('content-type', 'application/json').send(scrub(text));
  };
  const refuse = (reply: FastifyReply, id: RpcId, error: WireError): void =>
    send(reply, error.status, errorText(id, error));

  const answer: ModernFace['handle'] = async ({ request, reply, caller, message }) => {
    // The revision has none that it sends over HTTP; they are accepted and mean nothing.
    if (message.kind === 'notification') {
      reply.code(202).send();
      return undefined;
    }
    const { id, method, params } = message;
    const { headers } = request;
    const envelope = readEnvelope(params); //                                               6  −32602
    if (isWireError(envelope)) return refuse(reply, id, envelope);
    const body = { version: envelope.version, method, params };
    const wrong =
      headerMismatch(headers, body) ?? //                                                   7  −32020
      versionProblem(envelope) ?? //                                                        8  −32022
      headerMissing(headers, body); //                                                      9  −32020
    if (wrong !== undefined) return refuse(reply, id, wrong);
    const { declared } = envelope;
    if (isTaskMethod(method)) {
      if (!declared.tasks) return refuse(reply, id, missingTasks()); //                    11  −32021
      if (method === 'tasks/get') {
        const task = await readTask(tasks, caller, params);
        const text = resultTextOf(id, taskTexts.textOf(task, reachOf(declared)));
        return sendAtTurnEnd(reply.code(200).header('content-type', 'application/json'), text);
      }
      const fields = await taskMethod(tasks, method, { caller, params }); //     12  −32602
      return send(reply, 200, resultText(id, { resultType: 'complete', ...fields, _meta: resultMeta }));
    }
    if (method === 'subscriptions/listen') {
      const refused = await listening.serve({
        id,
        params,
        caller,
        declared,
        takeOver: () => {
          reply.hijack();
          return reply.raw;
        },
      });
      return refused === undefined ? undefined : refuse(reply, id, refused);
    }
    if (!SERVER_METHODS.includes(method)) return refuse(reply, id, NOT_FOUND); //          10  404 −32601
    const watch = watchAnswer(reply.raw, closing.signal, log);
    const { status, text } = await serveRequest({
      info,
      catalogue,
      request: message,
      envelope,
      call: async () => {
        try {
          return await callTool(callParts, { caller, envelope, params, headers, ...watch });
        } catch (error) {
          if (isRefusal(error)) return { kind: 'error', error: wireError(error) };
          log.error('mcp.bug', { method, error });
          return { kind: 'error', error: BUG };
        }
      },
    });
    return send(reply, status, text);
  };

  return {
    async handle(input) {
      try {
        await answer(input);
      } catch (error) {
        // The id is echoed here, where it is known.
        if (input.message.kind !== 'request') throw error;
        if (!isRefusal(error)) log.error('mcp.bug', { method: input.message.method, error });
        refuse(input.reply, input.message.id, isRefusal(error) ? wireError(error) : BUG);
      }
    },
    close() {
      closing.abort();
      listening.close();
    },
  };
}

/**
 * Sends after everything else of this turn of the event loop was read. Polls arrive in crowds, and their answers go through a
 * proxy that sleeps between them: answers that leave together wake it once instead of once each.
 */
function sendAtTurnEnd(reply: FastifyReply, text: string): void {
  setImmediate(() => reply.send(text));
}

const NOT_FOUND: WireError = { status: 404, code: METHOD_NOT_FOUND, message: 'Method not found' };
