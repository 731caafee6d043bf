/**
 * In separate namespaces (main.ts): `make images` with PUSH=1 on a real engine, to registries on the loopback
 * interface. The images are small ones with the stages of the Dockerfile.
 */
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { OciRegistry, REGISTRY_PORTS } from '../support/oci-registry.ts'
import { step } from './task-client.ts'
import { IMAGE, startTaskEngine } from './task-engine.ts'

const [folder = '', kind = 'docker'] = process.argv.slice(2)
const SCRIPT = join(import.meta.dirname, '../../deploy/images/build.sh')
const [OPEN, PRIVATE] = REGISTRY_PORTS
const LOGIN = 'pusher:s3cret-7c'
const NAMES = ['headroom-controller', 'headroom-gpu-server']
const DOCKERFILE = [
  `FROM ${IMAGE} AS controller`,
  'COPY package.json /controller',
  `FROM ${IMAGE} AS gpu-server`,
  'COPY package.json /gpu-server',
].join('\n')

assert.ok(kind === 'docker' || kind === 'podman', kind)
step(`${kind} starts`)
const engine = await startTaskEngine(kind, folder)
interface Ended {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

const OURS = { ...process.env, ...(kind === 'docker' ? engine.env : {}), ...engine.commandEnv }
const checkout = join(folder, 'checkout')
mkdirSync(checkout)
writeFileSync(join(checkout, 'package.json'), '{ "version": "1.2.3" }')
writeFileSync(join(checkout, 'Dockerfile'), DOCKERFILE)
const identity = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'commit.gpgsign=false']
for (const words of [
  ['init', '--quiet'],
  ['add', '.'],
  ['commit', '--quiet', '-m', 'a'],
])
  execFileSync('git', ['-C', checkout, ...identity, ...words])
const open = new OciRegistry({ port: OPEN })
const guarded = new OciRegistry({ port: PRIVATE, login: LOGIN })
try {
  await Promise.all([open.start(), guarded.start()])
  step('images are built without a push')
  const built = await images({})
  assert.match(
    built.stdout,
    /^headroom-controller:1\.2\.3 \S+\nheadroom-gpu-server:1\.2\.3 \S+\n$/,
    built.stderr,
  )
  step('images are pushed, and the digests that are printed are those of the registry')
  await pushes(open, `127.0.0.1:${OPEN}/team`)
  step('a registry that needs a login gets nothing without one')
  const refused = await images({ PUSH: '1', REGISTRY: `127.0.0.1:${PRIVATE}/team` })
  assert.notEqual(refused.status, 0)
  assert.equal(refused.stdout, '')
  const [user = '', password = ''] = LOGIN.split(':')
  const login = ['login', '--username', user, '--password-stdin', `127.0.0.1:${PRIVATE}`]
  assert.equal((await run(kind, login, password)).status, 0)
  await pushes(guarded, `127.0.0.1:${PRIVATE}/team`)
} finally {
  await Promise.all([open.end(), guarded.end()])
  await engine.stop()
}

async function pushes(registry: OciRegistry, at: string): Promise<void> {
  const { status, stdout, stderr } = await images({ PUSH: '1', REGISTRY: at })
  assert.equal(status, 0, stderr)
  const digests = NAMES.map((name) => registry.digestOf(`team/${name}`, '1.2.3'))
  const [first = ''] = stdout.split('\n')
  assert.deepEqual(
    stdout.split('\n'),
    [...NAMES.map((name, i) => `${at}/${name}@${digests[i] ?? 'none'}`), ''],
    stderr,
  )
  await run(kind, ['rmi', '--force', `${at}/${NAMES[0] ?? ''}:1.2.3`])
  const said = await run(kind, ['run', '--rm', '--network=none', first, 'busybox', 'cat', '/controller'])
  assert.match(said.stdout, /1\.2\.3/, said.stderr)
}

/** The registries run in this process, so it must not wait without serving. */
function images(env: Readonly<Record<string, string>>): Promise<Ended> {
  return run(SCRIPT, [], '', { ENGINE: kind, ...env })
}

function run(
  program: string,
  words: readonly string[],
  input = '',
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      program,
      words,
      { cwd: checkout, env: { ...OURS, ...env } },
      (error, stdout, stderr) =>
        resolve({ status: error === null ? 0 : Number(error.code ?? 1), stdout, stderr }),
    )
    child.stdin?.end(input)
  })
}
