/**
 * The images of docker-compose.yml without a registry: the build of this repository, Node and a busybox, put
 * together as the Dockerfile says. Its RUN lines of the last stages are run, and its USER, ENTRYPOINT, ENV
 * and so on are taken over, so that a change there is seen here.
 */
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { stagesOf, type Instruction } from '../support/dockerfile.ts'
import type { Engine } from './engine.ts'

const ROOT = join(import.meta.dirname, '../..')
const TAKEN_OVER = ['USER', 'ENTRYPOINT', 'CMD', 'ENV', 'EXPOSE', 'VOLUME', 'WORKDIR']
const PASSWD = 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n'
const INVENTORY = 'gpus: [{ model: declared, vram_mib: 8192, swap: pinned-gen4 }]\n'

/** @param dist what `make build` made */
export function makeImages(engine: Engine, folder: string, dist: string): void {
  const app = join(folder, 'app')
  baseRoot(app)
  cpSync(dist, join(app, 'app/dist'), { recursive: true })
  for (const path of ['package.json', 'scenarios'])
    cpSync(join(ROOT, path), join(app, 'app', path), { recursive: true })
  copyPackages(join(app, 'app'))
  mkdirSync(join(app, 'app/dist/gpu-server/guard/build'), { recursive: true })
  execFileSync('cp', [
    '-p',
    join(ROOT, 'gpu-server/guard/build/headroom-guard'),
    join(app, 'app/dist/gpu-server/guard/build/'),
  ])
  // It must be newer than its sources, or a compiler is looked for.
  execFileSync('touch', [join(app, 'app/dist/gpu-server/guard/build/headroom-guard')])
  // The declared GPUs of the test.
  writeFileSync(join(app, 'app/inventory.yaml'), INVENTORY)
  for (const name of ['controller', 'gpu-server']) imageOf(engine, app, name, `headroom-${name}:latest`)
  const nats = join(folder, 'nats')
  baseRoot(nats)
  copyProgram(nats, '/usr/sbin/nats-server', '/usr/bin/nats-server')
  imported(engine, nats, 'nats:2.11-alpine', ['ENTRYPOINT ["nats-server"]'])
}

/** The stages of an image from ours on, each on a copy of the root. */
function imageOf(engine: Engine, app: string, name: string, tag: string): void {
  const stages = stagesOf(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))
  const instructions: Instruction[] = ['base', name].flatMap((stage) => [
    ...(stages.get(stage)?.instructions ?? []),
  ])
  const root = `${app}-${name}`
  cpSync(app, root, { recursive: true, verbatimSymlinks: true })
  const changes: string[] = []
  for (const { keyword, text } of instructions) {
    if (keyword === 'RUN') execFileSync('chroot', [root, '/bin/sh', '-c', text])
    if (TAKEN_OVER.includes(keyword)) changes.push(`${keyword} ${text}`)
  }
  imported(engine, root, tag, changes)
}

function imported(engine: Engine, root: string, tag: string, changes: readonly string[]): void {
  const options = changes
    .flatMap((change) => ['--change', change])
    .map((each) => `'${each.replaceAll("'", "'\\''")}'`)
  const path = 'ENV PATH=/usr/local/bin:/usr/bin:/bin'
  execFileSync(
    'sh',
    ['-c', `tar c -C '${root}' . | docker import --change '${path}' ${options.join(' ')} - ${tag}`],
    {
      env: engine.env,
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  )
}

function baseRoot(root: string): void {
  for (const path of ['bin', 'usr/bin', 'usr/local/bin', 'etc', 'tmp', 'proc', 'sys', 'dev', 'root', 'app']) {
    mkdirSync(join(root, path), { recursive: true })
  }
  execFileSync('chmod', ['1777', join(root, 'tmp')])
  cpSync('/bin/busybox', join(root, 'bin/busybox'))
  for (const name of ['sh', 'mkdir', 'chown', 'chmod', 'cat', 'ls', 'id', 'sleep', 'wget'])
    symlinkSync('busybox', join(root, 'bin', name))
  writeFileSync(join(root, 'etc/passwd'), PASSWD)
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnogroup:x:65534:\n')
  copyProgram(root, process.execPath, '/usr/local/bin/node')
}

/** With the libraries that it needs. */
function copyProgram(root: string, from: string, to: string): void {
  mkdirSync(dirname(join(root, to)), { recursive: true })
  cpSync(realpathSync(from), join(root, to))
  const libraries = execFileSync('ldd', [from], { encoding: 'utf8' }).matchAll(/(\/\S+)\s+\(0x/g)
  for (const [, library = ''] of libraries) {
    mkdirSync(dirname(join(root, library)), { recursive: true })
    cpSync(realpathSync(library), join(root, library))
  }
}

/** What is not for development, without the Node that is a package. */
function copyPackages(app: string): void {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly devOptional?: boolean }>>
  }
  const there = new Set(readdirSync(join(ROOT, 'node_modules')))
  for (const [path, about] of Object.entries(lock.packages)) {
    const [folder, name = ''] = path.split('/')
    if (
      folder !== 'node_modules' ||
      about.dev === true ||
      about.devOptional === true ||
      name.startsWith('node-linux-')
    )
      continue
    if (!there.has(name)) continue
    try {
      cpSync(join(ROOT, path), join(app, path), { recursive: true, verbatimSymlinks: true })
    } catch (error) {
      // Optional packages of other machines are not installed.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
}
