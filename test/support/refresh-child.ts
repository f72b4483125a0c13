/** A Keyturn in a process of its own that works on the tasks of a refresh rig. Told by its parent what to be. */
import { openKeyturn } from '../../src/app.ts';
import { readConfig, type ConfigInput } from '../../src/config.ts';
import { readShelf } from './refresh-rig.ts';

/** What the parent tells. */
export interface RefreshChildOrder {
  readonly config: ConfigInput;
  readonly env: Readonly<Record<string, string>>;
  readonly apiUrl: string;
}

/** What the child tells: it is up, one more job runs. When everything is stopped, it ends. */
export type RefreshChildWord = 'up' | 'runs';

function tell(word: RefreshChildWord): void {
  process.send?.(word);
}

process.once('message', (message) => {
  void (async () => {
    const { config, env, apiUrl } = message as RefreshChildOrder;
    const job = readShelf(apiUrl, () => tell('runs'));
    const keyturn = await openKeyturn(readConfig({ ...config, log: { level: 'silent' }, tools: [job] }), {
      env: { ...env },
    });
    process.once('message', () => {
      void keyturn.stop().then(() => {
        process.disconnect();
      });
    });
    // A child never outlives its parent.
    process.once('disconnect', () => process.exit());
    keyturn.start();
    tell('up');
  })();
});
