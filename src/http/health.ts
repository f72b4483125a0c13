/** Liveness and readiness. `/healthz`: the process answers. `/readyz`: it can do its work, and wants to. */
import type { FastifyInstance } from 'fastify';
import type { Ledger } from '../store/ledger.ts';

/** How long the ledger may take before the process counts as not ready. */
const PATIENCE_MS = 2_000;

export function mountHealth(app: FastifyInstance, parts: { ledger: Ledger; draining: () => boolean }): void {
  app.get('/healthz', (_request, reply) => reply.send({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    if (parts.draining()) return reply.code(503).send({ status: 'draining' });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), PATIENCE_MS);
    });
    try {
      const read = await Promise.race([parts.ledger.nextDue(), late]);
      if (read === 'late') return await reply.code(503).send({ status: 'ledger is slow' });
      return await reply.send({ status: 'ready' });
    } catch {
      return await reply.code(503).send({ status: 'ledger is away' });
    } finally {
      clearTimeout(timer);
    }
  });
}
