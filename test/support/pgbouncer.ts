/** PgBouncer on a free port of the loopback interface, before a PostgreSQL server. It never runs as root. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { vi } from 'vitest'
import { afterEachFile } from './endings.ts'
import { freePort } from './free-port.ts'
import { UNPRIVILEGED, type PostgresServer } from './postgres-server.ts'
import { WAIT } from './wait.ts'

/** Debian installs it in a folder that is only in the PATH of root. */
const ENVIRONMENT = { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` }

const running = new Map<ChildProcess, string>()
afterEachFile(() => {
  for (const [child, folder] of running) {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  running.clear()
})

/** Null when PgBouncer is installed; otherwise the reason to skip its tests. */
export function whyNoPgBouncer(): string | null {
  try {
    execFileSync('pgbouncer', ['--version'], { stdio: 'ignore', env: ENVIRONMENT })
    return null
  } catch {
    const why = 'PgBouncer is not installed: `apt-get install pgbouncer`'
    process.stderr.write(`skipped: ${why}\n`)
    return why
  }
}

/** @returns the URL of the same database through the pooler */
export async function pooled(
  server: PostgresServer,
  mode: 'session' | 'transaction' | 'statement',
  settings: readonly string[] = [],
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-pgbouncer-'))
  const port = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    '[databases]\n' +
      `postgres = host=127.0.0.1 port=${server.port} user=headroom\n` +
      '[pgbouncer]\nlisten_addr = 127.0.0.1\n' +
      `listen_port = ${port}\nunix_socket_dir =\nauth_type = any\npool_mode = ${mode}\n` +
      `${settings.join('\n')}\n`,
  )
  // With auth_type any the user comes from the database line.
  const user = process.geteuid?.() === 0 ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}
  if (process.geteuid?.() === 0) chownSync(folder, UNPRIVILEGED, UNPRIVILEGED)
  const child = spawn('pgbouncer', [file], { stdio: 'ignore', env: ENVIRONMENT, cwd: folder, ...user })
  running.set(child, folder)
  const url = `postgres://headroom@127.0.0.1:${port}/postgres`
  await vi.waitFor(async () => {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    await client.connect()
    await client.query('select 1')
    await client.end()
  }, WAIT)
  return url
}
