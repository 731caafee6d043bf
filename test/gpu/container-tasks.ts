/** In separate namespaces (containers.ts): FOLDER of the engine, GPU as JSON. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { copyProgram } from '../containers/images.ts'
import { startTaskEngine, type TaskEngine } from '../containers/task-engine.ts'
import { type Gpu, outliveServerAt } from './cluster.ts'
import { compile } from './cuda-program.ts'
import { expect, say } from './say.ts'

const IMAGE = 'headroom-test/worker:1'
const WORKER = '/worker'
const DEVICES = '/run/cdi'
/** What a program of the driver's API loads at some time. */
const LIBRARIES = /^lib(cuda|nvidia-(ml|ptxjitcompiler|gpucomp|nvvm))\.so\.\d+/
const GENERATE = ['cdi', 'generate', '--device-name-strategy=uuid', `--output=${DEVICES}/nvidia.yaml`]
const OF_ONE_GPU = /^nvidia\d+$/
/** No process can have an id there by accident. */
const TASK_UIDS = '300000-301023'

const [folder = '', gpu = ''] = process.argv.slice(2)
chmodSync(folder, 0o755)
const engine = await startTaskEngine('podman', folder)
// The servers of the cluster inherit it.
Object.assign(process.env, engine.env)
try {
  offerGpus()
  importWorker(engine)
  const serverOptions = ['--container-runtime', 'podman', '--task-uids', TASK_UIDS]
  const task = { image: IMAGE }
  const place = { worker: WORKER, notes: '/headroom/work', task, serverOptions }
  await outliveServerAt(place, JSON.parse(gpu) as Gpu, (id) => seesGpus(engine, id))
} finally {
  await engine.stop()
}

/** With NVIDIA's tool where it is installed; elsewhere as that would, in the mounts of this process only. */
function offerGpus(): void {
  mkdirSync(DEVICES, { recursive: true })
  const { status } = spawnSync('nvidia-ctk', GENERATE)
  if (status !== 0) writeFileSync(join(DEVICES, 'nvidia.json'), JSON.stringify(specification(), null, 2))
  say(`podman finds the GPUs by a specification ${status === 0 ? 'of nvidia-ctk' : 'of this test'}`)
}

function specification(): object {
  const shared = ['/dev/nvidiactl', '/dev/nvidia-uvm', '/dev/nvidia-uvm-tools']
  const list = ['--query-gpu=uuid,index', '--format=csv,noheader']
  const rows = execFileSync('nvidia-smi', list, { encoding: 'utf8' }).trim().split('\n')
  return {
    cdiVersion: '0.3.0',
    kind: 'nvidia.com/gpu',
    devices: rows.map((row) => {
      const [uuid = '', index = ''] = row.split(', ')
      return { name: uuid, containerEdits: { deviceNodes: [{ path: `/dev/nvidia${index}` }] } }
    }),
    containerEdits: {
      deviceNodes: shared.map((path) => ({ path })),
      mounts: librariesOfDriver().map((hostPath) => ({
        hostPath: realpathSync(hostPath),
        containerPath: join('/usr/lib/x86_64-linux-gnu', basename(hostPath)),
        options: ['ro', 'nosuid', 'nodev', 'rbind', 'rprivate'],
      })),
    },
  }
}

/** Paths of those in the folder of the driver's own. */
function librariesOfDriver(): readonly string[] {
  const listed = execFileSync('ldconfig', ['-p'], { encoding: 'utf8' }).matchAll(/x86-64\) => (\S+)/g)
  const folders = [...[...listed].map(([, path = '']) => dirname(path)), ...libraryPath()]
  const own = folders.find((each) => existsSync(join(each, 'libcuda.so.1')))
  if (own === undefined) throw new Error('libcuda.so.1 was not found')
  return readdirSync(own)
    .filter((name) => LIBRARIES.test(name))
    .map((name) => join(own, name))
}

function libraryPath(): readonly string[] {
  return (process.env['LD_LIBRARY_PATH'] ?? '').split(':').filter((each) => each !== '')
}

function importWorker(engine: TaskEngine): void {
  const root = join(folder, 'worker-root')
  for (const path of ['tmp', 'etc', 'proc', 'sys', 'dev']) mkdirSync(join(root, path), { recursive: true })
  copyProgram(root, compile('worker', folder), WORKER)
  // The driver's library comes from the host and needs these from the image.
  for (const path of librariesOfDriver()) {
    const needed = execFileSync('ldd', [path], { encoding: 'utf8' }).matchAll(/=> (\/\S+) /g)
    for (const [, library = ''] of needed)
      if (!LIBRARIES.test(basename(library))) copyProgram(root, library, library)
  }
  engine.importImage(root, IMAGE)
}

interface Inspected {
  readonly State: { readonly Pid: number }
}

/** The device files in the container are those of the placement's GPUs. */
function seesGpus(engine: TaskEngine, id: string): void {
  const names = engine.containers().map((line) => line.split(' ')[0] ?? '')
  const own = names.filter((name) => engine.inspect(name).includes(id))
  expect(own.length === 1, 'the task has one container')
  const [container] = JSON.parse(engine.inspect(own[0] ?? '')) as readonly Inspected[]
  const pid = container?.State.Pid
  const seen = readdirSync(`/proc/${pid}/root/dev`).filter((name) => OF_ONE_GPU.test(name))
  expect(seen.join() === 'nvidia0', `in it is GPU 0 and no other (${seen.join(', ')})`)
}
