/**
 * A separate Docker engine in a separate folder; an engine that already runs on this host is not affected.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { openSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const START_WITHIN_MS = 60_000
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024
/** Inherited from the caller; a variable of docker-compose.yml must not come from a developer's shell. */
const INHERITED = ['PATH', 'HOME', 'TMPDIR', 'LANG']
/**
 * Paths to which an engine writes regardless of its options: sockets of containerd and plugins, its own key.
 */
const FIXED_PLACES = ['/run', '/etc/docker']

/** Lists the networks that GPU servers made. */
export const NETWORKS = ['network', 'ls', '--filter', 'label=io.headroom.server', '--format', '{{.Name}}']

export interface Engine {
  readonly env: NodeJS.ProcessEnv
  readonly socket: string
  docker(...args: readonly string[]): string
  stop(): Promise<void>
}

/**
 * Uses the overlay file system if the kernel has it, and otherwise copies every layer. Needs separate
 * namespaces (main.ts). Rejects with the last lines of its log when it does not answer within a minute.
 */
export async function startEngine(folder: string): Promise<Engine> {
  const inFolder = (name: string): string => join(folder, name)
  const socket = inFolder('docker.sock')
  for (const place of FIXED_PLACES) execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', place])
  execFileSync('busybox', ['ip', 'link', 'set', 'lo', 'up'])
  const log = openSync(inFolder('log'), 'a')
  const places = [
    '--data-root',
    inFolder('data'),
    '--exec-root',
    inFolder('exec'),
    '-H',
    `unix://${socket}`,
    '-p',
    inFolder('pid'),
  ]
  const groups = ['--cgroup-parent', `/${basename(folder)}`, '--exec-opt', 'native.cgroupdriver=cgroupfs']
  const daemon = spawn('dockerd', [...places, ...groups, '--shutdown-timeout=5'], {
    stdio: ['ignore', log, log],
  })
  const ended = new Promise<void>((resolve) => daemon.once('exit', () => resolve()))
  const inherited = INHERITED.flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  )
  const env: NodeJS.ProcessEnv = { ...Object.fromEntries(inherited), DOCKER_HOST: `unix://${socket}` }
  const deadline = performance.now() + START_WITHIN_MS
  while (spawnSync('docker', ['info'], { env, stdio: 'ignore' }).status !== 0) {
    if (performance.now() > deadline || daemon.exitCode !== null) {
      const log = readFileSync(inFolder('log'), 'utf8').trim().split('\n')
      throw new Error(`dockerd does not answer:\n${log.slice(-5).join('\n')}`)
    }
    await wait(200)
  }
  return {
    env,
    socket,
    docker: (...args) =>
      execFileSync('docker', args, {
        env,
        encoding: 'utf8',
        maxBuffer: MAX_OUTPUT_BYTES,
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    async stop() {
      process.kill(Number(readFileSync(inFolder('pid'), 'utf8')), 'SIGTERM')
      await ended
    },
  }
}
