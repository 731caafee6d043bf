/**
 * `make test-containers`: `compose DIST` is the shipped docker-compose.yml, profile gpu, on a real Docker
 * engine, with only the device replaced; `two DIST` adds
 * deploy/compose/two-controllers.yml; `tasks docker` and `tasks podman` are tasks with an image; `push
 * docker` and `push podman` are `make images` with a registry. An engine and its containers have separate
 * network, mounts and processes: ports are free, and firewall rules, bridges and mounts end with them.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const ENGINE = ['busybox', 'unshare']
const EVERY = [...ENGINE, 'nats-server']
const PROOFS: Readonly<Record<string, { readonly file: string; readonly programs: readonly string[] }>> = {
  compose: { file: 'proof.ts', programs: [...EVERY, 'dockerd', 'docker', 'docker-compose', 'nsenter'] },
  two: { file: 'two-controllers.ts', programs: [...EVERY, 'dockerd', 'docker', 'docker-compose', 'initdb'] },
  'push docker': { file: 'push.ts', programs: [...ENGINE, 'git', 'dockerd', 'docker'] },
  'push podman': { file: 'push.ts', programs: [...ENGINE, 'git', 'podman', 'runc'] },
  'tasks docker': { file: 'tasks.ts', programs: [...EVERY, 'dockerd', 'docker'] },
  'tasks podman': { file: 'tasks.ts', programs: [...EVERY, 'podman', 'runc'] },
}
const NAMESPACES = ['--net', '--mount', '--pid', '--ipc', '--uts', '--fork', '--kill-child', '--mount-proc']
const CGROUPS = '/sys/fs/cgroup'
const REMOVAL_TRIES = 50
const REMOVE_EVERY_MS = 200

const [what = '', more = ''] = process.argv.slice(2)
const proof = PROOFS[what] ?? PROOFS[`${what} ${more}`]
if (proof === undefined) throw new Error(`unknown proof ${what} ${more}`)
const { file, programs } = proof
const why = whyNot()
if (why !== null) {
  process.stdout.write(`skipped: ${what} ${more} starts a container engine: ${why}\n`)
  process.exit(process.env['CI'] ? 1 : 0)
}
const folder = mkdtempSync(join(tmpdir(), 'headroom-containers-'))
// The engine mounts its own folder there, and a mount needs an existing target.
const made = mkdirSync('/etc/docker', { recursive: true })
process.exitCode = await inNamespaces()
await removeRest()

function whyNot(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'run it as root on Linux'
  const missing = programs.filter((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0)
  if (missing.length > 0) return `missing ${missing.join(', ')}`
  const { status, stderr } = spawnSync('unshare', [...NAMESPACES, 'mount', '-t', 'tmpfs', 'tmpfs', '/run'], {
    encoding: 'utf8',
  })
  return status === 0 ? null : `root has no permission for it here: ${stderr.trim().split('\n')[0]}`
}

/**
 * Resolves with the exit code. When this process receives a signal, everything that it started ends at once.
 */
function inNamespaces(): Promise<number> {
  const program = [process.execPath, join(import.meta.dirname, file), folder, more]
  const child = spawn('unshare', [...NAMESPACES, ...program], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => child.kill('SIGKILL'))
  return new Promise((resolve) => child.once('exit', (code) => resolve(code ?? 1)))
}

/**
 * The folder, and the control groups of containers, which contain its name. Killed processes may need a
 * moment to end.
 */
async function removeRest(): Promise<void> {
  const roots = existsSync(CGROUPS)
    ? [CGROUPS, ...readdirSync(CGROUPS).map((name) => join(CGROUPS, name))]
    : []
  const left = (): readonly string[] =>
    roots.map((root) => join(root, basename(folder))).filter((group) => existsSync(group))
  for (let tries = 0; left().length > 0 && tries < REMOVAL_TRIES; tries++) {
    spawnSync('find', [...left(), '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';'], { stdio: 'ignore' })
    await wait(REMOVE_EVERY_MS)
  }
  if (left().length > 0) process.stderr.write(`could not be removed: ${left().join(' ')}\n`)
  rmSync(folder, { recursive: true, force: true })
  if (made !== undefined) rmdirSync(made)
}
