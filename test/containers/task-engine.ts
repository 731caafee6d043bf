/** An engine that runs containers of tasks in a test, Docker or podman. */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { NETWORKS, startEngine } from './engine.ts'
import { startPodman } from './podman.ts'

export interface TaskEngine {
  readonly kind: 'docker' | 'podman'
  /** Names it to a GPU server. */
  readonly env: Readonly<Record<string, string>>
  readonly socketPath: string
  /** With which its own command works in this process, in addition to `env`. */
  readonly commandEnv: Readonly<Record<string, string>>
  importImage(root: string, tag: string): void
  /** Of the whole engine, running or not. */
  containers(): readonly string[]
  /** Networks that GPU servers made. */
  networks(): readonly string[]
  /** Runs a container, as an operator does; returns its output. */
  run(...args: readonly string[]): string
  logs(container: string): string
  remove(container: string): void
  /** Starts a process in a running container, as an operator does. */
  exec(container: string, ...command: readonly string[]): void
  /** What the engine stores about a container. */
  inspect(container: string): string
  stop(): Promise<void>
}

/** The only programs are those of a static busybox: 2 MB. */
export const IMAGE = 'headroom-test/busybox:1'

export async function startTaskEngine(kind: TaskEngine['kind'], folder: string): Promise<TaskEngine> {
  const engine = kind === 'podman' ? await startPodman(folder) : await startDocker(folder)
  const root = join(folder, 'rootfs')
  for (const path of ['bin', 'tmp', 'etc', 'proc', 'sys', 'dev'])
    mkdirSync(join(root, path), { recursive: true })
  chmodSync(join(root, 'tmp'), 0o1777)
  const busybox = execFileSync('sh', ['-c', 'command -v busybox'], { encoding: 'utf8' }).trim()
  cpSync(busybox, join(root, 'bin/busybox'), { dereference: true })
  symlinkSync('busybox', join(root, 'bin/sh'))
  engine.importImage(root, IMAGE)
  return engine
}

async function startDocker(folder: string): Promise<TaskEngine> {
  const { docker, env, socket, stop } = await startEngine(folder)
  return {
    kind: 'docker',
    env: { DOCKER_HOST: `unix://${socket}` },
    socketPath: socket,
    commandEnv: { DOCKER_CONFIG: join(folder, 'docker-config') },
    importImage: (root, tag) => {
      execFileSync('sh', ['-c', 'tar c -C "$0" . | docker import - "$1"', root, tag], {
        env,
        stdio: ['ignore', 'ignore', 'pipe'],
      })
    },
    containers: () => docker('ps', '--all', '--format', '{{.Names}} {{.Status}}').split('\n').filter(Boolean),
    networks: () =>
      docker(...NETWORKS)
        .split('\n')
        .filter(Boolean),
    run: (...args) => docker('run', ...args),
    logs: (container) => docker('logs', container),
    remove: (container) => void docker('rm', '--force', container),
    inspect: (container) => docker('inspect', container),
    exec: (container, ...command) => void docker('exec', '--detach', container, ...command),
    stop,
  }
}
