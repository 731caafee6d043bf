import { type ForeignLibrary } from './foreign-library.ts'
import { HelperFault } from './helper-messages.ts'
import { NVML_SUCCESS, nvmlWords } from './nvml-codes.ts'
import { nvmlFunctions, type NvmlFunctions } from './nvml-functions.ts'
import { NvmlProcesses } from './nvml-processes.ts'
import { type GpuMemory, type GpuSnapshot, type HostSnapshot, mibThere } from './snapshot.ts'

/** More than any host has; a larger answer of the driver is ignored. */
const MAX_GPUS = 64
const NAME_BYTES = 96
const VERSION_BYTES = 80
/** nvmlMemory_v2_t: version and padding, then total, reserved, free, used. */
const MEMORY_V2 = { bytes: 40, version: 40 | (2 << 24), total: 8, reserved: 16, free: 24 }
/** nvmlMemory_t: total, free, used. */
const MEMORY_V1 = { bytes: 24, total: 0, free: 8 }

/** The NVIDIA Management Library, read only. Runs inside a helper process. */
export class Nvml {
  readonly #functions: NvmlFunctions
  readonly #processes: NvmlProcesses
  #isReady = false

  constructor(library: ForeignLibrary, nowMicroseconds: () => number) {
    this.#functions = nvmlFunctions(library)
    this.#processes = new NvmlProcesses(this.#functions, nowMicroseconds)
  }

  /**
   * Rejects with HelperFault when NVML as a whole does not work; faults of single GPUs are part of the
   * answer.
   * @param withUse also reads the processes that were busy since the last call
   */
  async snapshot(withUse: boolean): Promise<HostSnapshot> {
    await this.#initialize()
    const driver = await this.#text('nvmlSystemGetDriverVersion', VERSION_BYTES, (buffer, length) =>
      this.#functions.driverVersion(buffer, length),
    )
    const count = await this.#count()
    const gpus: GpuSnapshot[] = []
    for (let index = 0; index < count; index++) gpus.push(await this.#gpu(index, withUse))
    return { driver, gpus }
  }

  async #initialize(): Promise<void> {
    if (this.#isReady) return
    check('nvmlInit_v2', await this.#functions.init())
    this.#isReady = true
  }

  async #count(): Promise<number> {
    const count = Buffer.alloc(4)
    check('nvmlDeviceGetCount_v2', await this.#functions.count(count))
    return Math.min(count.readUInt32LE(), MAX_GPUS)
  }

  async #gpu(index: number, withUse: boolean): Promise<GpuSnapshot> {
    const faults: string[] = []
    const attempt = async <T>(read: () => Promise<T>): Promise<T | null> => {
      try {
        return await read()
      } catch (fault) {
        if (!(fault instanceof HelperFault)) throw fault
        faults.push(`GPU ${index}: ${fault.message}`)
        return null
      }
    }
    const handle = await attempt(() => this.#handle(index))
    if (handle === null) return { ...UNREADABLE, index, faults }
    const f = this.#functions
    return {
      index,
      uuid: await attempt(() =>
        this.#text('nvmlDeviceGetUUID', NAME_BYTES, (buffer, length) => f.uuid(handle, buffer, length)),
      ),
      model:
        (await attempt(() =>
          this.#text('nvmlDeviceGetName', NAME_BYTES, (buffer, length) => f.name(handle, buffer, length)),
        )) ?? 'unknown',
      memory: await attempt(() => this.#memory(handle)),
      isMig: (await this.#isMig(handle)) ?? false,
      utilizationPercent: await this.#utilization(handle),
      processes: await attempt(() => this.#processes.memory(handle)),
      busyPids: withUse ? await this.#processes.busy(index, handle) : null,
      faults,
    }
  }

  async #handle(index: number): Promise<bigint> {
    const pointer = Buffer.alloc(8)
    check('nvmlDeviceGetHandleByIndex_v2', await this.#functions.handle(index, pointer))
    return pointer.readBigUInt64LE()
  }

  async #memory(handle: bigint): Promise<GpuMemory> {
    if (this.#functions.memoryV2 !== null) {
      const info = Buffer.alloc(MEMORY_V2.bytes)
      info.writeUInt32LE(MEMORY_V2.version)
      if ((await this.#functions.memoryV2(handle, info)) === NVML_SUCCESS) {
        const physical = number(info, MEMORY_V2.total) - number(info, MEMORY_V2.reserved)
        return { physicalMib: mibThere(physical), freeMib: mibThere(number(info, MEMORY_V2.free)) }
      }
    }
    const info = Buffer.alloc(MEMORY_V1.bytes)
    check('nvmlDeviceGetMemoryInfo', await this.#functions.memoryV1(handle, info))
    return {
      physicalMib: mibThere(number(info, MEMORY_V1.total)),
      freeMib: mibThere(number(info, MEMORY_V1.free)),
    }
  }

  /** Null: this GPU has no MIG mode. */
  async #isMig(handle: bigint): Promise<boolean | null> {
    if (this.#functions.migMode === null) return null
    const current = Buffer.alloc(4)
    const pending = Buffer.alloc(4)
    if ((await this.#functions.migMode(handle, current, pending)) !== NVML_SUCCESS) return null
    return current.readUInt32LE() === 1
  }

  /** Null where the GPU does not report it, as always under MIG. */
  async #utilization(handle: bigint): Promise<number | null> {
    const rates = Buffer.alloc(8)
    if ((await this.#functions.utilization(handle, rates)) !== NVML_SUCCESS) return null
    return rates.readUInt32LE()
  }

  async #text(
    name: string,
    bytes: number,
    read: (buffer: Buffer, length: number) => Promise<number>,
  ): Promise<string> {
    const buffer = Buffer.alloc(bytes)
    check(name, await read(buffer, bytes))
    const end = buffer.indexOf(0)
    return buffer.toString('utf8', 0, end < 0 ? bytes : end)
  }
}

const UNREADABLE = {
  uuid: null,
  model: 'unreadable',
  memory: null,
  isMig: false,
  utilizationPercent: null,
  processes: null,
  busyPids: null,
} as const

/** Throws HelperFault unless the call succeeded. */
function check(name: string, code: number): void {
  if (code === NVML_SUCCESS) return
  throw new HelperFault({ kind: 'driver', message: `${name}: ${nvmlWords(code)}`, code })
}

function number(buffer: Buffer, offset: number): number {
  return Number(buffer.readBigUInt64LE(offset))
}
