/**
 * `make test-gpu`: real CUDA programs on a real GPU. Two that do not fit together alternate on GPU 0 and find
 * their data unchanged; then the cost of a swap is measured, in the form of the simulator's profiles; then a
 * complete cluster runs on it and is compared with its simulation. Without an NVIDIA GPU the test is skipped.
 * Options name other libraries: --nvml PATH --cuda PATH; `--only hooks,wake` runs these parts alone.
 */
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { SwapProfile } from '../../simulator/scenario/swap-profiles.ts'
import { AcceleratorFault } from '../../gpu-server/devices/accelerator.ts'
import { calibrate } from './calibration.ts'
import {
  compareWithSimulation,
  type Gpu,
  outliveServer,
  serveUnawarePrograms,
  whyNoPyTorch,
} from './cluster.ts'
import { compile } from './cuda-program.ts'
import { runInContainers } from './containers.ts'
import { GpuHost } from './gpu-host.ts'
import { moveByHooks, wakeServers } from './serving-cluster.ts'
import { say } from './say.ts'
import { takeTurns } from './take-turns.ts'

const PARTS: Readonly<Record<string, (gpu: Gpu) => Promise<void>>> = {
  server: outliveServer,
  containers: runInContainers,
  programs: serveUnawarePrograms,
  wake: wakeServers,
  hooks: moveByHooks,
}

const { values: options } = parseArgs({
  options: { nvml: { type: 'string' }, cuda: { type: 'string' }, only: { type: 'string' } },
})
const { only, ...libraries } = options
const parts = only?.split(',') ?? []
const folder = mkdtempSync(join(tmpdir(), 'headroom-test-gpu-'))
// Tasks run the programs in it, each as a separate user.
chmodSync(folder, 0o755)

try {
  const swapped = await trySwaps()
  if (swapped === null) say('skipped: no NVIDIA GPU')
  else {
    await tryCluster(swapped)
    say('passed')
  }
} catch (error) {
  say(`FAILED: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true })
}

interface Swapped {
  readonly gpus: readonly Gpu[]
  readonly profile: SwapProfile | null
}

/** Null if there is no GPU. */
async function trySwaps(): Promise<Swapped | null> {
  const host = new GpuHost({ nvml: libraries.nvml, cuda: libraries.cuda })
  try {
    if (!(await isThere(host))) return null
    if (parts.length > 0) return { gpus: gpusOf(host), profile: null }
    const program = compile('fill', folder)
    const room = await takeTurns(host, program)
    const profile = await calibrate(host, program, room)
    return { gpus: gpusOf(host), profile }
  } finally {
    await host.close()
  }
}

function gpusOf({ accelerator }: GpuHost): readonly Gpu[] {
  const { driver } = accelerator
  return accelerator.gpus().map(({ model, physical_mib }) => ({ driver, model, physicalMib: physical_mib }))
}

/** A GPU whose driver does not work is a failure; a machine without a device of the driver is not. */
async function isThere({ accelerator }: GpuHost): Promise<boolean> {
  try {
    await accelerator.open()
    return true
  } catch (fault) {
    if (fault instanceof AcceleratorFault && !existsSync('/dev/nvidiactl')) return false
    throw fault
  }
}

async function tryCluster({ gpus, profile }: Swapped): Promise<void> {
  const [gpu] = gpus
  if (gpu !== undefined && parts.length > 0) return tryParts(gpu)
  const why =
    libraries.cuda !== undefined
      ? 'the libraries are not those of the driver'
      : gpus.length > 1
        ? 'its scenario is for one GPU'
        : profile === null
          ? 'the profile is missing'
          : null
  if (gpu === undefined || profile === null || why !== null) return say(`no cluster: ${why}`)
  await compareWithSimulation(gpu, profile)
  await outliveServer(gpu)
  await runInContainers(gpu)
  const whyNot = whyNoPyTorch()
  if (whyNot !== null) return say(`no PyTorch programs: ${whyNot}`)
  await serveUnawarePrograms(gpu)
  await wakeServers(gpu)
  await moveByHooks(gpu)
}

async function tryParts(gpu: Gpu): Promise<void> {
  for (const name of parts) {
    const part = PARTS[name]
    const names = Object.keys(PARTS).join(', ')
    if (part === undefined) throw new Error(`--only: there is no part ${name}; use ${names}`)
    say(`── ${name}`)
    await part(gpu)
  }
}
