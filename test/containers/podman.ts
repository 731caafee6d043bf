/** A separate podman service in a separate folder; needs separate namespaces (main.ts), as Docker does. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { REGISTRY_PORTS } from '../support/oci-registry.ts'
import { NETWORKS } from './engine.ts'
import type { TaskEngine } from './task-engine.ts'

const START_WITHIN_MS = 60_000
const STOP_WITHIN_MS = 10_000
/** Its own state is below /run, whatever its options say. */
const FIXED_PLACES = ['/run']

/** Rejects with the last lines of its log when it does not answer within a minute. */
export async function startPodman(folder: string): Promise<TaskEngine> {
  const inFolder = (name: string): string => join(folder, name)
  for (const place of FIXED_PLACES) execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', place])
  execFileSync('busybox', ['ip', 'link', 'set', 'lo', 'up'])
  mkdirSync(inFolder('networks'))
  writeFileSync(inFolder('containers.conf'), configuration(inFolder('networks')))
  writeFileSync(inFolder('registries.conf'), REGISTRY_PORTS.map(withoutTls).join(''))
  const env = {
    ...process.env,
    CONTAINERS_CONF: inFolder('containers.conf'),
    CONTAINERS_REGISTRIES_CONF: inFolder('registries.conf'),
    TMPDIR: folder,
  }
  const places = ['--root', inFolder('root'), '--runroot', inFolder('runroot'), '--tmpdir', inFolder('tmp')]
  const socket = `unix://${inFolder('podman.sock')}`
  const log = openSync(inFolder('log'), 'a')
  const service = spawn('podman', [...places, 'system', 'service', '--time=0', socket], {
    env,
    // Where conmon notes that memory ended a container.
    cwd: folder,
    stdio: ['ignore', log, log],
  })
  const ended = new Promise<void>((resolve) => service.once('exit', () => resolve()))
  const client = ['--remote', '--url', socket]
  const deadline = performance.now() + START_WITHIN_MS
  while (spawnSync('podman', [...client, 'info'], { env, stdio: 'ignore' }).status !== 0) {
    if (performance.now() > deadline || service.exitCode !== null) {
      const lines = readFileSync(inFolder('log'), 'utf8').trim().split('\n')
      throw new Error(`podman does not answer:\n${lines.slice(-5).join('\n')}`)
    }
    await wait(200)
  }
  const podman = (...args: readonly string[]): string =>
    execFileSync('podman', [...client, ...args], { env, encoding: 'utf8' })
  return {
    kind: 'podman',
    env: { CONTAINER_HOST: socket },
    socketPath: inFolder('podman.sock'),
    commandEnv: commandIn(folder, places, env),
    importImage: (root, tag) => {
      execFileSync('sh', ['-c', 'tar c -C "$0" . | podman "$@"', root, ...client, 'import', '-', tag], {
        env,
        stdio: ['ignore', 'ignore', 'pipe'],
      })
    },
    containers: () => podman('ps', '--all', '--format', '{{.Names}} {{.Status}}').split('\n').filter(Boolean),
    networks: () =>
      podman(...NETWORKS)
        .split('\n')
        .filter(Boolean),
    run: (...args) => podman('run', ...args),
    logs: (container) => podman('logs', container),
    remove: (container) => void podman('rm', '--force', container),
    inspect: (container) => podman('inspect', container),
    exec: (container, ...command) => void podman('exec', '--detach', container, ...command),
    async stop() {
      service.kill('SIGTERM')
      await Promise.race([ended, wait(STOP_WITHIN_MS).then(() => service.kill('SIGKILL'))])
      // Its folders of control groups; the kernel keeps those that another podman uses.
      spawnSync('sh', ['-c', 'rmdir /sys/fs/cgroup/libpod_parent /sys/fs/cgroup/*/libpod_parent'], {
        stdio: 'ignore',
      })
    },
  }
}

/** A command `podman` of the same engine, without its service. */
function commandIn(
  folder: string,
  places: readonly string[],
  env: Readonly<Record<'CONTAINERS_CONF' | 'CONTAINERS_REGISTRIES_CONF' | 'TMPDIR', string>>,
): Readonly<Record<string, string>> {
  const program = execFileSync('sh', ['-c', 'command -v podman'], { encoding: 'utf8' }).trim()
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'podman'), `#!/bin/sh\nexec ${program} ${places.join(' ')} "$@"\n`, { mode: 0o755 })
  writeFileSync(join(folder, 'auth.json'), '{}')
  const { CONTAINERS_CONF, CONTAINERS_REGISTRIES_CONF, TMPDIR } = env
  return {
    PATH: `${bin}:${process.env['PATH'] ?? ''}`,
    REGISTRY_AUTH_FILE: join(folder, 'auth.json'),
    ...{ CONTAINERS_CONF, CONTAINERS_REGISTRIES_CONF, TMPDIR },
  }
}

function withoutTls(port: number): string {
  return `[[registry]]\nlocation = "127.0.0.1:${port}"\ninsecure = true\n`
}

/** Its default limits need a right that root of a container lacks. runc also runs on cgroups v1. */
function configuration(networks: string): string {
  return [
    '[containers]',
    'default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]',
    '[engine]',
    'cgroup_manager = "cgroupfs"',
    'runtime = "runc"',
    'events_logger = "file"',
    '[network]',
    'network_backend = "netavark"',
    `network_config_dir = ${JSON.stringify(networks)}`,
    '',
  ].join('\n')
}
