#!/usr/bin/env node
/** `keyturn`: the list of commands. Each is a file in `cli/`. */
import { isRefusal } from './errors.ts';

const COMMANDS: Record<string, { about: string; run: () => Promise<(args: string[]) => Promise<number>> }> = {
  serve: {
    about:
      'run the server: --config <file>, --stdio --as <subject>, or --sandbox for a whole world on this machine',
    run: async () => (await import('./cli/serve.ts')).serve,
  },
  demo: {
    about:
      'the whole story on this machine, told in plain lines; --interactive waits for you instead of a script',
    run: async () => (await import('./cli/demo.ts')).demo,
  },
  doctor: {
    about: 'check configuration, issuer, providers, keys, ledger and clock: --config <file>',
    run: async () => (await import('./cli/doctor.ts')).doctor,
  },
  keys: {
    about: 'generate | list | rewrap | retire <kid>: the vault keys and what needs them: --config <file>',
    run: async () => (await import('./cli/keys.ts')).keys,
  },
  'audit-log': {
    about: 'export | verify: the audit log as JSON lines, or its chain checked: --config <file>',
    run: async () => (await import('./cli/audit-log.ts')).auditLog,
  },
  connections: {
    about: 'list | revoke: by --owner and --provider: --config <file>',
    run: async () => (await import('./cli/connections.ts')).connections,
  },
  owners: {
    about: 'block | readmit | erase: a person who leaves, by --owner: --config <file>',
    run: async () => (await import('./cli/owners.ts')).owners,
  },
};

const [name = 'help', ...args] = process.argv.slice(2);
const command = COMMANDS[name];
if (command === undefined) {
  const lines = Object.entries(COMMANDS).map(([one, { about }]) => `  keyturn ${one.padEnd(12)} ${about}`);
  process.stdout.write(`Usage:\n${lines.join('\n')}\n`);
  process.exitCode = ['help', '--help', '-h'].includes(name) ? 0 : 2;
} else {
  try {
    process.exitCode = await (await command.run())(args);
  } catch (error) {
    // What an operator can mend is told in a line; anything else is a bug and shows where it happened.
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    const mistake = code.startsWith('ERR_PARSE_ARGS');
    const told = isRefusal(error) || mistake || code === 'EADDRINUSE' || code === 'EACCES';
    const words = told
      ? (error as Error).message
      : error instanceof Error
        ? (error.stack ?? error.message)
        : 'failed';
    process.stderr.write(`keyturn ${name}: ${words}\n`);
    process.exitCode = mistake ? 2 : 1;
  }
}
