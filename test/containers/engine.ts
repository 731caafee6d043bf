/**
 * A Docker engine of the test's own, in a folder of its own; nothing of an engine that runs here is touched.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const START_WITHIN_MS = 60_000
const PACKAGES = ['docker.io', 'docker-compose', 'busybox-static', 'nats-server']
const PROGRAMS = ['dockerd', 'docker-compose', 'busybox', 'nats-server']
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/** Null once everything is installed; otherwise why the test is left out. */
export function whyNoEngine(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return 'it starts a Docker engine: run it as root on Linux'
  const missing = (): boolean =>
    PROGRAMS.some((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0)
  if (missing() && spawnSync('sh', ['-c', 'command -v apt-get']).status === 0) {
    process.stdout.write(`installing ${PACKAGES.join(', ')}\n`)
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    spawnSync('apt-get', ['update', '-qq'], { env, stdio: 'ignore' })
    spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...PACKAGES], {
      env,
      stdio: 'ignore',
    })
  }
  return missing() ? `${PROGRAMS.join(', ')} are needed, and could not all be installed` : null
}

export interface Engine {
  readonly env: NodeJS.ProcessEnv
  docker(...args: readonly string[]): string
  stop(): Promise<void>
}

/** Rejects when it does not answer within a minute. */
export async function startEngine(folder: string): Promise<Engine> {
  const socket = `unix://${join(folder, 'docker.sock')}`
  const places = [
    '--data-root',
    join(folder, 'data'),
    '--exec-root',
    join(folder, 'exec'),
    '-H',
    socket,
    '-p',
    join(folder, 'pid'),
  ]
  const log = openSync(join(folder, 'log'), 'a')
  const daemon = spawn('dockerd', [...places, '--storage-driver=vfs'], { stdio: ['ignore', log, log] })
  const ended = new Promise<void>((resolve) => daemon.once('exit', () => resolve()))
  const env = { ...process.env, DOCKER_HOST: socket }
  const engine: Engine = {
    env,
    docker: (...args) =>
      execFileSync('docker', args, {
        env,
        encoding: 'utf8',
        maxBuffer: MAX_OUTPUT_BYTES,
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    async stop() {
      daemon.kill('SIGTERM')
      await ended
    },
  }
  const deadline = performance.now() + START_WITHIN_MS
  while (spawnSync('docker', ['info'], { env, stdio: 'ignore' }).status !== 0) {
    if (performance.now() > deadline || daemon.exitCode !== null)
      throw new Error(`dockerd does not answer: see ${join(folder, 'log')}`)
    await wait(200)
  }
  return engine
}
