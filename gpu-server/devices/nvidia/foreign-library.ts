import type * as Koffi from 'koffi'
import type { LibraryHandle } from 'koffi'
import { HelperFault } from './helper-messages.ts'
import { errorText } from '../../../protocol/error-text.ts'

/**
 * A function of the library. It runs in its own thread, so that the process notices its parent's end even
 * while a call hangs.
 */
export type ForeignFunction = (...args: readonly unknown[]) => Promise<number>

/** A shared library of the driver; all its functions return an int. */
export interface ForeignLibrary {
  /** Returns null when the library lacks the function. */
  find(name: string, parameters: readonly string[]): ForeignFunction | null
  /** Throws HelperFault when the library lacks the function. */
  need(name: string, parameters: readonly string[]): ForeignFunction
  /** The function at an address that the library returned. */
  at(address: bigint, parameters: readonly string[]): AddressedFunction
  /** The address of a buffer, valid as long as the caller keeps the buffer. */
  addressOf(buffer: Buffer): bigint
  /** A copy of memory that belongs to the library. */
  bytesAt(address: bigint, length: number): Buffer
}

export interface AddressedFunction {
  readonly later: ForeignFunction
  /** Runs in the calling thread, which it may block: for functions that depend on the state of the thread. */
  readonly now: (...args: readonly unknown[]) => number
}

/** A non-blocking function, called in the calling thread; with the errno that it left. */
export type ForeignCall = (...args: readonly unknown[]) => { readonly result: number; readonly errno: number }

type NativeFunction = ReturnType<LibraryHandle['func']>

/** The size of an ordinary thread; koffi's default of 128 KiB is small for a driver. */
const STACK_BYTES = 8 * 1024 * 1024

/**
 * Rejects with HelperFault.
 * @param ffiModule the module to import as koffi
 */
export async function loadLibrary(path: string, ffiModule: string): Promise<ForeignLibrary> {
  const ffi = await importFfi(ffiModule)
  const library = open(ffi, path)
  const find = (name: string, parameters: readonly string[]): ForeignFunction | null => {
    const native = lookUp(library, name, parameters)
    return native === null ? null : (...args) => call(native, args)
  }
  return {
    find,
    need: (name, parameters) => {
      const found = find(name, parameters)
      if (found !== null) return found
      throw new HelperFault({
        kind: 'function_missing',
        message: `${path} has no ${name}: the driver is too old`,
        code: null,
      })
    },
    at: (address, parameters) => {
      const native = ffi.decode(address, ffi.proto('int', [...parameters])) as NativeFunction
      return { later: (...args) => call(native, args), now: (...args) => Number(native(...args)) }
    },
    addressOf: (buffer) => ffi.address(buffer),
    bytesAt: (address, length) => Buffer.from(Buffer.from(ffi.view(address, length))),
  }
}

/**
 * Returns a lookup for functions of the library that are called directly. Rejects, and the lookup throws,
 * with HelperFault.
 */
export async function loadDirectly(
  path: string,
  ffiModule: string,
): Promise<(name: string, result: 'int' | 'long', parameters: readonly string[]) => ForeignCall> {
  const ffi = await importFfi(ffiModule)
  const library = open(ffi, path)
  return (name, resultType, parameters) => {
    const native = library.func(name, resultType, [...parameters])
    return (...args) => {
      const result = Number(native(...args))
      return { result, errno: ffi.errno() }
    }
  }
}

/** koffi takes its settings once, before the first library. */
let imported: Promise<typeof Koffi> | null = null

function importFfi(ffiModule: string): Promise<typeof Koffi> {
  imported ??= configuredFfi(ffiModule)
  return imported
}

async function configuredFfi(ffiModule: string): Promise<typeof Koffi> {
  try {
    const { default: ffi } = (await import(ffiModule)) as { default: typeof Koffi }
    ffi.config({ ...ffi.config(), async_stack_size: STACK_BYTES })
    return ffi
  } catch (cause) {
    throw new HelperFault({
      kind: 'ffi_missing',
      message: `koffi does not load: ${firstLine(cause)}`,
      code: null,
    })
  }
}

function open(ffi: typeof Koffi, path: string): LibraryHandle {
  try {
    return ffi.load(path)
  } catch (cause) {
    throw new HelperFault({
      kind: 'library_missing',
      message: `${path} cannot be loaded: ${firstLine(cause)}`,
      code: null,
    })
  }
}

function lookUp(library: LibraryHandle, name: string, parameters: readonly string[]): NativeFunction | null {
  try {
    return library.func(name, 'int', [...parameters])
  } catch {
    return null
  }
}

/** The caller keeps its buffers until the call has returned. */
function call(native: NativeFunction, args: readonly unknown[]): Promise<number> {
  return new Promise((resolve, reject) => {
    native.async(...args, (error: Error | null, result: number) => {
      if (error === null) resolve(result)
      else reject(error)
    })
  })
}

function firstLine(cause: unknown): string {
  return errorText(cause).split('\n')[0] ?? ''
}
