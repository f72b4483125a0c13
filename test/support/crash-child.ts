/** A Keyturn in a process of its own, that a test may end at any instant. Told by its parent what to be. */
import { openKeyturn } from '../../src/app.ts';
import { readConfig, type ConfigInput } from '../../src/config.ts';
import { defineJob, text } from '../../src/engine/define.ts';
import { importRecords } from '../../src/world.ts';
import { cutPower, type CrashPoint } from './crash-points.ts';

/** What the parent tells. */
export interface CrashChildOrder {
  readonly config: ConfigInput;
  readonly env: Record<string, string>;
  readonly recordsUrl: string;
  readonly point: CrashPoint | null;
}

/** A job that ends the process that runs it. */
const deadly = defineJob({
  name: 'deadly',
  description: 'Ends its server',
  run: () => {
    process.kill(process.pid, 'SIGKILL');
    return Promise.resolve(text('never'));
  },
});

process.once('message', (message) => {
  void (async () => {
    const { config, env, recordsUrl, point } = message as CrashChildOrder;
    const keyturn = await openKeyturn(readConfig({ ...config, tools: [importRecords(recordsUrl), deadly] }), {
      env,
      ...(point === null ? {} : { wrapStore: (engine) => cutPower(engine, point) }),
    });
    await keyturn.app.listen({ host: '127.0.0.1', port: config.listen?.port ?? 0 });
    keyturn.start();
    process.send?.('up');
  })();
});
