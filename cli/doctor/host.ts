/** Checks this machine: Node, a compiler for the guard, the driver's library, a folder for the store. */
import { execFile } from 'node:child_process'
import { access, constants, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { findEngine } from '../../gpu-server/container/find-engine.ts'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'
import { fail, ok, warn, type Check } from './check.ts'
import { errorText } from '../../protocol/error-text.ts'

/** Equals `engines` in package.json. */
const REQUIRED_NODE = [22, 18] as const
const COMPILE_TIMEOUT_MS = 20_000
const LIBRARY = 'libnvidia-ml.so.1'
const LIBRARY_FOLDERS = [
  '/usr/lib/x86_64-linux-gnu',
  '/usr/lib/aarch64-linux-gnu',
  '/usr/lib64',
  '/usr/lib',
  '/usr/lib/wsl/lib',
  '/usr/local/nvidia/lib64',
]

export async function nodeVersionCheck(version: string): Promise<readonly Check[]> {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isNewEnough = major > REQUIRED_NODE[0] || (major === REQUIRED_NODE[0] && minor >= REQUIRED_NODE[1])
  return [
    isNewEnough
      ? ok('Node.js', version)
      : fail('Node.js', version, `install ${REQUIRED_NODE.join('.')} or newer`),
  ]
}

/** The guard of a GPU server's tasks is a small C program, compiled on the host. */
export async function compilerCheck(): Promise<readonly Check[]> {
  const folder = await mkdtemp(join(tmpdir(), 'headroom-doctor-'))
  try {
    const source = join(folder, 'probe.c')
    await writeFile(
      source,
      '#include <sys/prctl.h>\n#include <unistd.h>\nint main(void) { return ' +
        'prctl(PR_SET_CHILD_SUBREAPER, 1) != 0; }\n',
    )
    await promisify(execFile)('cc', ['-O1', '-o', join(folder, 'probe'), source], {
      timeout: COMPILE_TIMEOUT_MS,
    })
    await promisify(execFile)(join(folder, 'probe'), { timeout: COMPILE_TIMEOUT_MS })
    return [ok('guard', 'cc compiles programs')]
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    const detail = isMissing
      ? 'no C compiler found'
      : `cc does not work: ${errorText(error).split('\n', 1)[0]}`
    return [
      warn('guard', detail, 'a GPU server needs a C compiler to build its guard: install gcc and libc6-dev'),
    ]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Paths of kernel settings that matter for swaps. */
export interface KernelFiles {
  readonly hugePages: string
  readonly ptraceScope: string
}

const KERNEL_FILES: KernelFiles = {
  hugePages: '/sys/kernel/mm/transparent_hugepage/enabled',
  ptraceScope: '/proc/sys/kernel/yama/ptrace_scope',
}
/** Yama: not even root may trace (kernel documentation, "Yama"). */
const TRACING_DISABLED = '3'

/** A GPU server offers containers to tasks if an engine answers. */
export async function containerCheck(env: NodeJS.ProcessEnv): Promise<readonly Check[]> {
  const found = await findEngine('auto', env)
  if (found.engine === null)
    return [
      warn(
        'containers',
        found.why,
        'only tasks with an image need Docker, podman or apptainer on the server',
      ),
    ]
  const { engine } = found
  const place = engine.kind === 'apptainer' ? engine.program : engine.socketPath
  return [ok('containers', `${engine.kind} ${engine.version} at ${place}`)]
}

export async function nvidiaCheck(
  folders: readonly string[] = LIBRARY_FOLDERS,
  kernel = KERNEL_FILES,
): Promise<readonly Check[]> {
  for (const folder of folders) {
    const found = await readdir(folder).catch((): string[] => [])
    if (found.includes(LIBRARY)) return [ok('NVIDIA', join(folder, LIBRARY)), ...(await swapChecks(kernel))]
  }
  return [warn('NVIDIA', `no ${LIBRARY}`, 'only a GPU server for NVIDIA GPUs needs the driver')]
}

async function swapChecks({ hugePages, ptraceScope }: KernelFiles): Promise<readonly Check[]> {
  const textOf = (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '')
  const mode = /\[(\w+)\]/.exec(await textOf(hugePages))?.[1] ?? null
  const scope = (await textOf(ptraceScope)).trim()
  return [
    ...(mode === null ? [] : [hugePagesCheck(mode, hugePages)]),
    ...(scope === TRACING_DISABLED
      ? [
          fail(
            'ptrace',
            `${ptraceScope} is ${scope}: ptrace is disabled`,
            'tasks can be swapped only if the value is below 3; to lower it, restart the host',
          ),
        ]
      : []),
  ]
}

/** The first driver whose custom storage the swap arena of a GPU server needs. */
const FIRST_ARENA_DRIVER = 615

/** Nothing without NODE_SWAP_ARENA. @param file the driver's own version file */
export async function swapArenaCheck(
  env: NodeJS.ProcessEnv,
  file = '/proc/driver/nvidia/version',
): Promise<readonly Check[]> {
  const size = ENVIRONMENT.swapArena.read(env[ENVIRONMENT.swapArena.name] ?? '')
  if (size === undefined || size === 0) return []
  const text = await readFile(file, 'utf8').catch(() => '')
  const version = /^NVRM version:.*?\s((\d+)(?:\.\d+)+)\s/.exec(text)
  if (Number(version?.[2]) >= FIRST_ARENA_DRIVER) return [ok('swap arena', `${size} MiB`)]
  const found = version === null ? 'the NVIDIA driver is not loaded' : `driver ${version[1]}`
  return [
    warn('swap arena', `not used: ${found}`, `a swap arena requires driver ${FIRST_ARENA_DRIVER} or later`),
  ]
}

/** The driver copies a swapped-out task into ordinary memory (docs/gpu-server.md, "Measured"). */
function hugePagesCheck(mode: string, file: string): Check {
  if (mode === 'always') return ok('huge pages', mode)
  return warn(
    'huge pages',
    `${mode}: swapping GPU memory takes about 1.5 times as long`,
    `echo always > ${file}`,
  )
}

/** Checks whether the store could be there; changes nothing. */
export async function dataDirCheck(env: NodeJS.ProcessEnv): Promise<readonly Check[]> {
  const folder = resolve(env[ENVIRONMENT.dataDir.name] || ENVIRONMENT.dataDir.byDefault)
  const todo = `set ${ENVIRONMENT.dataDir.name} to a writable folder; only a controller needs it`
  for (let at = folder; ; at = dirname(at)) {
    const facts = await stat(at).catch((error: NodeJS.ErrnoException) => error)
    if (facts instanceof Error) {
      if (facts.code === 'ENOENT' && at !== dirname(at)) continue
      return [warn('data', `${folder}: ${facts.message}`, todo)]
    }
    if (!facts.isDirectory()) return [warn('data', `${at} is not a folder`, todo)]
    const mayWrite = await access(at, constants.W_OK | constants.X_OK).then(
      () => true,
      () => false,
    )
    if (!mayWrite) return [warn('data', `${at} is not writable`, todo)]
    return [ok('data', at === folder ? `${folder} is writable` : `${folder} can be created`)]
  }
}
