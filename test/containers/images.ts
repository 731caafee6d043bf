/**
 * The images of docker-compose.yml without a registry: the build of this repository, Node and a busybox,
 * combined as in the Dockerfile. The engine runs the RUN lines of the last stages and applies USER,
 * ENTRYPOINT, ENV and so on, so that a change there is tested here.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { stagesOf, type Instruction } from '../support/dockerfile.ts'
import type { Engine } from './engine.ts'

const ROOT = join(import.meta.dirname, '../..')
const TAKEN_OVER = ['USER', 'ENTRYPOINT', 'CMD', 'ENV', 'EXPOSE', 'VOLUME', 'WORKDIR']
const PASSWD = 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n'
const APP_ROOT = 'headroom-app-root'
const INVENTORY = 'gpus: [{ model: declared, vram_mib: 8192, swap: pinned-gen4 }]\n'

/** @param dist output of `make build` */
export function makeImages(engine: Engine, folder: string, dist: string): void {
  const app = join(folder, 'app')
  baseRoot(app)
  copyProgram(app, process.execPath, '/usr/local/bin/node')
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
  // It must be newer than its sources, or a compiler is needed.
  execFileSync('touch', [join(app, 'app/dist/gpu-server/guard/build/headroom-guard')])
  // The declared GPUs of the test.
  writeFileSync(join(app, 'app/inventory.yaml'), INVENTORY)
  imported(engine, app, APP_ROOT)
  for (const name of ['controller', 'gpu-server']) imageOf(engine, name, `headroom-${name}:latest`)
  const nats = join(folder, 'nats')
  baseRoot(nats)
  copyProgram(nats, placeOf('nats-server'), '/usr/bin/nats-server')
  imported(engine, nats, 'nats:2.11-alpine', 'ENTRYPOINT ["nats-server"]')
}

/** The stages of an image from the first local one. All RUN lines run as root. */
function imageOf({ docker }: Engine, name: string, tag: string): void {
  const stages = stagesOf(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))
  const instructions: Instruction[] = ['base', name].flatMap((stage) => [
    ...(stages.get(stage)?.instructions ?? []),
  ])
  const lines = instructions.filter(({ keyword }) => keyword === 'RUN').map(({ text }) => text)
  const changes = instructions
    .filter(({ keyword }) => TAKEN_OVER.includes(keyword))
    .map(({ keyword, text }) => `${keyword} ${text}`)
  docker('run', '--name', name, '--network=none', APP_ROOT, '/bin/sh', '-ec', lines.join('\n'))
  docker('commit', ...changes.flatMap((change) => ['--change', change]), name, tag)
  docker('rm', name)
}

export function imported({ env }: Engine, root: string, tag: string, ...changes: readonly string[]): void {
  const options = ['ENV PATH=/usr/local/bin:/usr/bin:/bin', ...changes].flatMap((change) => [
    '--change',
    change,
  ])
  const script = 'tar c -C "$0" . | docker import "$@"'
  execFileSync('sh', ['-c', script, root, ...options, '-', tag], {
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  rmSync(root, { recursive: true })
}

export function baseRoot(root: string): void {
  for (const path of ['bin', 'usr/bin', 'usr/local/bin', 'etc', 'tmp', 'proc', 'sys', 'dev', 'root', 'app']) {
    mkdirSync(join(root, path), { recursive: true })
  }
  execFileSync('chmod', ['1777', join(root, 'tmp')])
  copyProgram(root, placeOf('busybox'), '/bin/busybox')
  for (const name of ['sh', 'mkdir', 'chown', 'chmod', 'cat', 'sleep', 'tee', 'wget'])
    symlinkSync('busybox', join(root, 'bin', name))
  writeFileSync(join(root, 'etc/passwd'), PASSWD)
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnogroup:x:65534:\n')
}

function placeOf(program: string): string {
  return execFileSync('sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim()
}

/** With its libraries; a static program needs none. */
export function copyProgram(root: string, from: string, to: string): void {
  mkdirSync(dirname(join(root, to)), { recursive: true })
  cpSync(realpathSync(from), join(root, to))
  const libraries = spawnSync('ldd', [from], { encoding: 'utf8' }).stdout.matchAll(/(\/\S+)\s+\(0x/g)
  for (const [, library = ''] of libraries) {
    mkdirSync(dirname(join(root, library)), { recursive: true })
    cpSync(realpathSync(library), join(root, library))
  }
}

/** The packages of the production images: those that the npm package carries, and koffi. */
function copyPackages(app: string): void {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly inBundle?: boolean }>>
  }
  const there = new Set(readdirSync(join(ROOT, 'node_modules')))
  for (const [path, about] of Object.entries(lock.packages)) {
    const [folder, name = ''] = path.split('/')
    if (folder !== 'node_modules' || (about.inBundle !== true && !/^(koffi|@koromix)$/.test(name))) continue
    if (!there.has(name)) continue
    try {
      cpSync(join(ROOT, path), join(app, path), { recursive: true, verbatimSymlinks: true })
    } catch (error) {
      // Optional packages of other machines are not installed.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
}
