import { ARGUMENT_BYTES, check } from './checkpoint-calls.ts'
import { CUDA_NOT_READY, CUDA_SUCCESS } from './cuda-codes.ts'
import { type AddressedFunction, type ForeignFunction, type ForeignLibrary } from './foreign-library.ts'
import { HelperFault } from './helper-messages.ts'

const OUT = 'void *'
/** The version of the interface that is requested: CUDA 13.4. */
const CUDA_VERSION = 13_040
const REGISTER_PORTABLE = 1
/** CUcheckpointRestoreArgs: after the GPU pairs, their number and a padding. */
const RESTORE_OUT_OFFSET = 16
/** CUcheckpointCustomStorageInfo: handle, array, number of its elements. */
const INFO_BYTES = 24
/** CUcheckpointCustomStoragePerDeviceData: address, size, stream. */
const DEVICE_BYTES = 24
const MAX_DEVICES = 64
const UUID_BYTES = 16

/** Memory of a process on one GPU, mapped into this process. */
export interface MappedMemory {
  readonly uuid: string
  readonly bytes: number
  readonly address: bigint
  readonly stream: bigint
  readonly context: bigint
}

/** Begun and not completed; the driver has no call that undoes it. */
export interface StorageOperation {
  readonly handle: bigint
  readonly memories: readonly MappedMemory[]
}

interface Gpu {
  readonly uuid: string
  readonly context: bigint
}

const PARAMETERS = {
  cuCheckpointOperationComplete: ['void *'],
  cuDeviceGetCount: [OUT],
  cuDeviceGet: [OUT, 'int'],
  cuDeviceGetUuid: [OUT, 'int'],
  cuDevicePrimaryCtxRetain: [OUT, 'int'],
  cuCtxSetCurrent: ['void *'],
  cuStreamGetDevice: ['void *', OUT],
  cuStreamQuery: ['void *'],
  cuMemHostRegister: ['void *', 'size_t', 'uint32_t'],
  cuMemcpyDtoHAsync: ['void *', 'uint64_t', 'size_t', 'void *'],
  cuMemcpyHtoDAsync: ['uint64_t', 'void *', 'size_t', 'void *'],
} as const

type Name = keyof typeof PARAMETERS

/**
 * The driver's custom storage: it maps the GPU memory of another process into this one, which copies it (CUDA
 * driver API 13.4, "CUDA Checkpointing":
 * https://docs.nvidia.com/cuda/cuda-driver-api/cuda_driver_api/group__CUDA__CHECKPOINT.html).
 * Names are looked up by version, because plain symbols may be those of an earlier interface.
 */
export class StorageCalls {
  readonly #library: ForeignLibrary
  readonly #checkpoint: ForeignFunction
  readonly #restore: ForeignFunction
  readonly #functions: ReadonlyMap<Name, AddressedFunction>
  /** GPUs by the driver's number. */
  readonly #gpus = new Map<number, Gpu>()

  private constructor(library: ForeignLibrary, functions: ReadonlyMap<Name, AddressedFunction>) {
    this.#library = library
    this.#functions = functions
    this.#checkpoint = library.need('cuCheckpointProcessCheckpoint', ['int', OUT])
    this.#restore = library.need('cuCheckpointProcessRestore', ['int', OUT])
  }

  /**
   * After cuInit. Keeps a context on every GPU of the host, as custom storage requires; it takes VRAM there.
   * Rejects with HelperFault.
   */
  static async open(library: ForeignLibrary): Promise<StorageCalls> {
    const calls = new StorageCalls(library, await functionsOf(library))
    await calls.#retainContexts()
    return calls
  }

  /** The process must be locked. */
  checkpoint(pid: number): Promise<StorageOperation> {
    return this.#begin('cuCheckpointProcessCheckpoint', this.#checkpoint, pid, 0)
  }

  /** The process must be checkpointed. */
  restore(pid: number): Promise<StorageOperation> {
    return this.#begin('cuCheckpointProcessRestore', this.#restore, pid, RESTORE_OUT_OFFSET)
  }

  /** Waits for the copies. The process is then checkpointed, or locked after a restore. */
  async complete({ handle }: StorageOperation): Promise<void> {
    const name = 'cuCheckpointOperationComplete'
    check(name, await this.#function(name).later(handle))
  }

  /** Pins memory of this process for the copies of all GPUs. */
  register(address: bigint, bytes: number): void {
    const [gpu] = this.#gpus.values()
    if (gpu === undefined) throw missing('there is no GPU')
    this.#now('cuCtxSetCurrent', gpu.context)
    this.#now('cuMemHostRegister', address, bytes, REGISTER_PORTABLE)
  }

  /** Begins the copy of one part. */
  copy(direction: 'out' | 'in', memory: MappedMemory, offset: number, host: bigint, bytes: number): void {
    const device = memory.address + BigInt(offset)
    this.#now('cuCtxSetCurrent', memory.context)
    if (direction === 'out') this.#now('cuMemcpyDtoHAsync', host, device, bytes, memory.stream)
    else this.#now('cuMemcpyHtoDAsync', device, host, bytes, memory.stream)
  }

  /** True when all copies that were begun have ended well. Throws HelperFault for a failed one. */
  hasCopied({ context, stream }: MappedMemory): boolean {
    this.#now('cuCtxSetCurrent', context)
    const code = this.#function('cuStreamQuery').now(stream)
    if (code === CUDA_NOT_READY) return false
    check('cuStreamQuery', code)
    return true
  }

  async #retainContexts(): Promise<void> {
    const count = await this.#number('cuDeviceGetCount')
    for (let index = 0; index < count; index++) {
      const device = await this.#number('cuDeviceGet', index)
      const uuid = Buffer.alloc(UUID_BYTES)
      check('cuDeviceGetUuid', await this.#function('cuDeviceGetUuid').later(uuid, device))
      const context = Buffer.alloc(8)
      const name = 'cuDevicePrimaryCtxRetain'
      check(name, await this.#function(name).later(context, device))
      this.#gpus.set(device, { uuid: uuid.toString('hex'), context: context.readBigUInt64LE() })
    }
  }

  async #begin(name: string, begin: ForeignFunction, pid: number, offset: number): Promise<StorageOperation> {
    const out = Buffer.alloc(8)
    const args = Buffer.alloc(ARGUMENT_BYTES)
    args.writeBigUInt64LE(this.#library.addressOf(out), offset)
    check(name, await begin(pid, args))
    const info = this.#library.bytesAt(out.readBigUInt64LE(), INFO_BYTES)
    const count = info.readUInt32LE(16)
    if (count > MAX_DEVICES) throw missing(`${name} returned ${count} GPUs`)
    const list = count === 0 ? info : this.#library.bytesAt(info.readBigUInt64LE(8), count * DEVICE_BYTES)
    const memories: MappedMemory[] = []
    for (let at = 0; at < count * DEVICE_BYTES; at += DEVICE_BYTES) {
      const stream = list.readBigUInt64LE(at + 16)
      const gpu = this.#gpus.get(await this.#number('cuStreamGetDevice', stream))
      if (gpu === undefined) throw missing(`${name} returned a GPU that this process does not know`)
      const bytes = Number(list.readBigUInt64LE(at + 8))
      memories.push({ ...gpu, bytes, stream, address: list.readBigUInt64LE(at) })
    }
    return { handle: info.readBigUInt64LE(0), memories }
  }

  /** Calls a function that returns an int through a pointer. */
  async #number(
    name: 'cuDeviceGetCount' | 'cuDeviceGet' | 'cuStreamGetDevice',
    about: number | bigint | null = null,
  ): Promise<number> {
    const out = Buffer.alloc(4)
    const args = about === null ? [out] : name === 'cuStreamGetDevice' ? [about, out] : [out, about]
    check(name, await this.#function(name).later(...args))
    return out.readInt32LE()
  }

  #now(name: Name, ...args: readonly unknown[]): void {
    check(name, this.#function(name).now(...args))
  }

  #function(name: Name): AddressedFunction {
    const found = this.#functions.get(name)
    if (found === undefined) throw new Error(`${name} was not looked up`)
    return found
  }
}

async function functionsOf(library: ForeignLibrary): Promise<ReadonlyMap<Name, AddressedFunction>> {
  const lookUp = library.find('cuGetProcAddress_v2', ['str', OUT, 'int', 'uint64_t', OUT])
  const found = new Map<Name, AddressedFunction>()
  for (const [name, parameters] of Object.entries(PARAMETERS)) {
    const address = Buffer.alloc(8)
    const code = (await lookUp?.(name, address, CUDA_VERSION, 0, Buffer.alloc(4))) ?? CUDA_SUCCESS
    if (code !== CUDA_SUCCESS || address.readBigUInt64LE() === 0n)
      throw missing(`the driver has no ${name} of CUDA 13.4; driver 615 or newer has it`)
    found.set(name as Name, library.at(address.readBigUInt64LE(), parameters))
  }
  return found
}

function missing(message: string): HelperFault {
  return new HelperFault({ kind: 'function_missing', message, code: null })
}
