/**
 * Opens the packaged Chromium with its web security as it is: the package's own flags would switch off the
 * same-origin policy and site isolation, and with them what the browser tests are there to prove (R14).
 *
 * One browser per test file; a context per person.
 */
import packaged from '@sparticuz/chromium';
import { chromium, type Browser } from 'playwright-core';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const FLAGS = [
  '--no-sandbox', // containers run the tests as root
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Unpacks the browser once per machine and version. The package writes straight to its target, which a second
 * test process would take for complete; so it unpacks into a directory of its own, and a rename publishes the
 * whole.
 */
async function unpack(): Promise<string> {
  const manifest = new URL('../package.json', import.meta.resolve('@sparticuz/chromium'));
  const { version } = JSON.parse(await readFile(manifest, 'utf8')) as { version: string };
  const home = join(tmpdir(), `keyturn-chromium-${version}`);
  const binary = join(home, 'chromium');
  if (existsSync(binary)) return binary;
  const staging = await mkdtemp(join(tmpdir(), 'keyturn-chromium-'));
  const before = process.env['TMPDIR'];
  process.env['TMPDIR'] = staging;
  try {
    await packaged.executablePath();
  } finally {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
  }
  await rename(staging, home).catch(async (error: unknown) => {
    await rm(staging, { recursive: true, force: true });
    if (!existsSync(binary)) throw error;
  });
  return binary;
}

/** A running browser; the caller closes it. */
export async function openChromium(): Promise<Browser> {
  return await chromium.launch({
    executablePath: await unpack(),
    args: FLAGS,
    headless: true,
    chromiumSandbox: false,
  });
}
