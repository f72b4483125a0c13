/**
 * A real nginx or Caddy, as Debian has them, with the configuration that `deploy/` shows: names, ports and files are
 * replaced by those of the test, and nothing else.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync, existsSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** Whether a program is on this machine. */
export function isInstalled(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

/** A certificate of its own for `localhost`. */
export interface Certificate {
  readonly certFile: string;
  readonly keyFile: string;
  readonly pem: string;
}

export function makeCertificate(folder: string): Certificate {
  const certFile = join(folder, 'cert.pem');
  const keyFile = join(folder, 'key.pem');
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile];
  execFileSync('openssl', ['req', '-x509', ...key, '-out', certFile, '-days', '2', ...subject], {
    stdio: 'pipe',
  });
  return { certFile, keyFile, pem: readFileSync(certFile, 'utf8') };
}

export interface ReverseProxy {
  /** Everything that its logs hold so far. */
  logs(): string;
  close(): Promise<void>;
}

export interface ReverseProxyOptions {
  /** File below `deploy/`. */
  readonly file: 'nginx/origin.conf' | 'nginx/prefix.conf' | 'Caddyfile';
  readonly port: number;
  readonly upstreamPorts: readonly number[];
  readonly certificate: Certificate;
  /** Takes the path prefix away instead of keeping it. */
  readonly strips?: boolean;
}

/** Starts the proxy; it answers when this resolves. @throws Error with the program's own words. */
export async function startReverseProxy(options: ReverseProxyOptions): Promise<ReverseProxy> {
  const { file, port, certificate } = options;
  const folder = mkdtempSync(join(tmpdir(), 'keyturn-proxy-'));
  const shown = readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8');
  const config = join(folder, 'proxy.conf');
  const replace = (text: string, ...pairs: readonly (readonly [string | RegExp, string])[]): string => {
    for (const [what, by] of pairs) {
      if (text.search(what) === -1) throw new Error(`deploy/${file} has no ${String(what)}`);
      text = text.replaceAll(what, by);
    }
    return text;
  };
  let command: [string, string[]];
  if (file === 'Caddyfile') {
    const upstreams = options.upstreamPorts.map((one) => `127.0.0.1:${one}`).join(' ');
    const site = replace(
      shown,
      [
        /^mcp\.example\.com \{/gm,
        `https://localhost:${port} {\n\ttls ${certificate.certFile} ${certificate.keyFile}`,
      ],
      [/127\.0\.0\.1:3000/g, upstreams],
      [/\/var\/log\/caddy/g, folder],
    );
    writeFileSync(config, `{\n\tadmin off\n\tauto_https off\n\tstorage file_system ${folder}\n}\n${site}`);
    command = ['caddy', ['run', '--adapter', 'caddyfile', '--config', config]];
  } else {
    const servers = options.upstreamPorts.map(
      (one) => `server 127.0.0.1:${one} max_fails=1 fail_timeout=5s;`,
    );
    const site = replace(
      shown,
      [/listen 443 ssl/g, `listen 127.0.0.1:${port} ssl`],
      [/server_name [\w.]+;/g, 'server_name localhost;'],
      [/server 127\.0\.0\.1:3000[^;]*;/g, servers.join('\n')],
      [/\/etc\/nginx\/tls\/fullchain\.pem/g, certificate.certFile],
      [/\/etc\/nginx\/tls\/privkey\.pem/g, certificate.keyFile],
      [/\/var\/log\/nginx/g, folder],
      ...(options.strips === true
        ? ([[/proxy_pass http:\/\/keyturn;/g, 'proxy_pass http://keyturn/;']] as const)
        : []),
    );
    const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${join(folder, name)};`,
    );
    writeFileSync(
      config,
      `daemon off; worker_processes 1; pid ${join(folder, 'pid')}; error_log ${join(folder, 'main.log')};\n` +
        `events { worker_connections 256; }\nhttp {\n${places.join('\n')}\n${site}\n}\n`,
    );
    command = ['nginx', ['-e', join(folder, 'main.log'), '-c', config]];
  }
  const child = spawn(...command, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += String(chunk)));
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  const logs = (): string =>
    [join(folder, 'keyturn.log'), join(folder, 'keyturn-error.log'), join(folder, 'main.log')]
      .filter((path) => existsSync(path))
      .map((path) => readFileSync(path, 'utf8'))
      .join('') + said;
  for (const until = Date.now() + 10_000; !(await answers(port)); await pause(30)) {
    if (child.exitCode !== null || Date.now() > until)
      throw new Error(`${command[0]} does not start: ${logs()}`);
  }
  return {
    logs,
    async close() {
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
