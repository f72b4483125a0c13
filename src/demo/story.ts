/**
 * The story of the demo: a real client, a real authorization server, a real person's browser in script form. Each line
 * is said only after it came true; the first that does not ends the story with exit code 1.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JobDefinition } from '../engine/define.ts';
import { openHost, type Host, type HostTask } from '../sandbox/mcp-client.ts';
import { openPerson, type Person } from '../sandbox/person.ts';
import { recordIds } from '../sandbox/records.ts';
import { importRecords, openWorld, type World } from '../world.ts';
import { dumpLedger, findSecrets } from './search.ts';

const ACCOUNT = 'alice@paperboat';
/** How long the hurried tool waits for a person. */
const HURRY_MS = 2_500;

class Untrue extends Error {}

function insist(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Untrue(what);
}

/** The link that a waiting task asks the client to show. */
function linkOf(task: HostTask): string {
  const request = Object.values(task.inputRequests ?? {}).find((one) => one.params.mode === 'url');
  const url = request?.params['url'];
  insist(typeof url === 'string', 'a waiting task lists a link');
  return url;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Tells the story. @returns the exit code. */
export async function tellStory(options: {
  interactive: boolean;
  say: (line: string) => void;
}): Promise<number> {
  const { say, interactive } = options;
  const startedAt = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'keyturn-demo-'));
  const log: string[] = [];
  const recordsTool = (url: string): JobDefinition => importRecords(url) as JobDefinition;
  let hurried: JobDefinition | undefined;
  const world = await openWorld({
    folder,
    logStream: { write: (line) => void log.push(line) },
    config: { timing: { sweepEveryMs: 200 }, log: { level: 'debug' } },
    moreTools: (url) => {
      hurried = { ...recordsTool(url), name: 'import_in_a_hurry', waitMs: HURRY_MS };
      return [hurried];
    },
  });
  const people: Person[] = [];
  const hosts: Host[] = [];
  try {
    await tell(world, say, interactive, people, hosts);
    say(searched(world, folder, log, people, hosts));
    say(`All of it came true in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.`);
    const found = count(world, folder, log, people, hosts);
    say(
      `Secrets found outside the vault: ${found.length}${found.length > 0 ? ` (${found.join(', ')})` : ''}`,
    );
    return found.length === 0 ? 0 : 1;
  } catch (error) {
    if (!(error instanceof Untrue)) throw error;
    say(`NOT TRUE: ${error.message}`);
    return 1;
  } finally {
    await Promise.all(hosts.map((host) => host.close().catch(() => undefined)));
    await world.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function hostOf(world: World, who: string): Promise<Host> {
  return openHost({
    mcpUrl: world.mcpUrl,
    name: `${who}'s chat`,
    accessToken: () =>
      world.sandbox.issuer.issueAccessToken({
        sub: who,
        clientId: 'demo-host',
        scope: 'mcp:tools',
        resource: world.mcpUrl,
        expiresInSeconds: 300,
      }),
  });
}

async function tell(
  world: World,
  say: (line: string) => void,
  interactive: boolean,
  people: Person[],
  hosts: Host[],
): Promise<void> {
  const { saas } = world.sandbox;
  const host = await hostOf(world, 'alice');
  hosts.push(host);
  const browser = (): Person => {
    const person = openPerson();
    people.push(person);
    return person;
  };
  const alice = browser();
  const signIn = async (link: string): Promise<void> => {
    if (interactive) {
      say(`   Open this link and sign in as alice: ${link}`);
      return;
    }
    const end = await alice.signInEverywhere(link, { as: 'alice' });
    insist(
      end.status === 200 && end.url.includes('/outcome/'),
      `the sign-in ends well (${end.status} ${end.url})`,
    );
  };
  const patience = interactive ? 30 * 60_000 : 15_000;

  say('1. Alice asks her agent to import 1,000 records. Her client calls the tool and gets a task at once.');
  saas.afterPages(4, () => {
    saas.expireAccessTokens();
    saas.revokeGrants(ACCOUNT);
  });
  const task = await host.start('import_records');
  insist(task.status === 'working', 'the call answers with a task that is working');
  let waiting = await host.until(task.taskId, ['input_required'], patience);
  say('   Paperboat does not know Alice yet, so the task asks first. She signs in once:');
  await signIn(linkOf(waiting));
  say('   Pages arrive.');

  say('2. In the middle of page 4 her access to Paperboat is revoked.');
  const first = Object.keys(waiting.inputRequests ?? {});
  waiting = await host.until(task.taskId, ['input_required', 'completed'], patience);
  while (waiting.status === 'input_required' && first.every((key) => key in (waiting.inputRequests ?? {}))) {
    await pause(50);
    waiting = await host.until(task.taskId, ['input_required', 'completed'], patience);
  }
  insist(waiting.status === 'input_required', 'the task stops');
  insist(world.keyturn.engine.running() === 0, 'no worker is held');
  const link = linkOf(waiting);
  say('   The task stopped: status "input_required", no worker held. Its link:');
  say(`   ${link}`);
  say(`   "${waiting.statusMessage ?? ''}"`);

  say('3. Somebody forwards the link to Bob. He signs in as himself and opens it.');
  const bob = browser();
  const refused = await bob.signInEverywhere(link, { as: 'bob' });
  insist(refused.status === 403, `Bob is refused (${refused.status})`);
  say('   Refused with 403. Nothing was asked of Paperboat, and the link still works for Alice.');

  const before = saas.apiCalls.filter(
    (call) => call.path.startsWith('/api/records') && call.status === 200,
  ).length;
  say('4. Alice opens the same link, signs in at Paperboat and agrees.');
  await signIn(link);
  const done = await host.until(task.taskId, ['completed', 'failed'], patience);
  insist(done.status === 'completed', `the task completes (${done.statusMessage ?? ''})`);
  const kept = await world.keyturn.ledger.readRecords(
    'paperboat-records',
    `${world.sandbox.issuer.issuer}#alice`,
    {
      afterId: '',
      limit: 2_000,
    },
  );
  const ids = kept.map((row) => row.id);
  const wanted = [...recordIds()].toSorted();
  insist(ids.length === wanted.length && ids.every((id, at) => id === wanted[at]), '1,000 ids exactly once');
  const pages = saas.apiCalls.filter(
    (call) => call.path.startsWith('/api/records') && call.status === 200,
  ).length;
  say(
    `   It went on from its checkpoint: ${before} pages before, ${pages - before} after, 1,000 ids exactly once.`,
  );

  if (interactive) return;

  say(
    '5. Too late: a task that waits only a moment. Alice gets as far as Paperboat, and lets the deadline pass.',
  );
  saas.expireAccessTokens();
  saas.revokeGrants(ACCOUNT);
  const hurried = await host.start('import_in_a_hurry');
  const short = await host.until(hurried.taskId, ['input_required']);
  const late = browser();
  await late.signInEverywhere(linkOf(short), { as: 'alice', account: 'nobody' });
  insist(late.page.url.startsWith(saas.origin), 'she is at Paperboat when the time is up');
  await host.until(hurried.taskId, ['failed'], HURRY_MS + 5_000);
  const redeemed = saas.tokenCalls.filter((call) => call.grantType === 'authorization_code').length;
  await finishAt(late);
  const over = await host.get(hurried.taskId);
  insist(late.page.status === 410, `the page says that it is over (${late.page.status})`);
  insist(
    saas.tokenCalls.filter((call) => call.grantType === 'authorization_code').length === redeemed,
    'the code was never redeemed',
  );
  insist(over.error?.code === 4011, 'the task failed with its reason');
  say(
    `   Refused: the code was never sent anywhere. The task: failed, ${over.error.code} "${over.error.message}"`,
  );

  say('6. A task that waits is cancelled.');
  const cancelled = await host.start('import_records');
  const open = linkOf(await host.until(cancelled.taskId, ['input_required']));
  await host.cancel(cancelled.taskId);
  insist((await host.get(cancelled.taskId)).status === 'cancelled', 'it is cancelled');
  const gone = await alice.open(open);
  insist(gone.status === 410, `its link says so (${gone.status})`);
  say('   Cancelled for good; its link says so.');

  say('7. The server restarts while a task waits.');
  const patient = await host.start('import_records');
  const asked = linkOf(await host.until(patient.taskId, ['input_required']));
  await world.restart();
  const still = await host.get(patient.taskId);
  insist(
    still.status === 'input_required' && linkOf(still) === asked,
    'the task and its link are still there',
  );
  await signIn(asked);
  const end = await host.until(patient.taskId, ['completed', 'failed']);
  insist(end.status === 'completed', `it completes after the restart (${end.statusMessage ?? ''})`);
  say('   Still there, same link. Alice signs in, and it completes.');
}

/** From the account choice at Paperboat to the end. */
async function finishAt(person: Person): Promise<void> {
  await person.press({ name: 'person', value: ACCOUNT });
  if (person.page.forms.some((form) => form.buttons.some((button) => button.value === 'allow'))) {
    await person.press({ name: 'action', value: 'allow' });
  }
}

function searched(
  world: World,
  folder: string,
  log: readonly string[],
  people: readonly Person[],
  hosts: readonly Host[],
): string {
  const bytes = places(world, folder, log, people, hosts).map(({ name, text }) => `${name}: ${text.length}`);
  return `8. Every byte that left the vault is searched for every secret of this run (${bytes.join(', ')}).`;
}

function places(
  world: World,
  folder: string,
  log: readonly string[],
  people: readonly Person[],
  hosts: readonly Host[],
) {
  // The state belongs into the authorization request, which the browser carries: nowhere else.
  const pages = people
    .flatMap((person) => person.visits)
    .filter((visit) => visit.url.startsWith(world.publicUrl))
    .map((visit) => visit.html.replace(/state=[\w-]+/g, 'state='));
  return [
    { name: 'MCP traffic', text: hosts.flatMap((host) => host.traffic).join('\n') },
    { name: 'logs', text: log.join('') },
    { name: 'pages', text: pages.join('\n') },
    { name: 'ledger', text: dumpLedger(join(folder, 'keyturn.sqlite')) },
  ];
}

function count(
  world: World,
  folder: string,
  log: readonly string[],
  people: readonly Person[],
  hosts: readonly Host[],
): string[] {
  const codes = people.flatMap((person) =>
    person.visits.flatMap((visit) => new URL(visit.url).searchParams.getAll('code')),
  );
  return findSecrets(places(world, folder, log, people, hosts), [...codes, ...world.secrets()]);
}
