/** Messages between the server and its helper processes. */
import type { Mib } from '../../../protocol/units.ts'

/**
 * `nvml` reads; `cuda` moves memory. Each is its own process, so that a hanging call leaves the other usable.
 */
export type HelperRole = 'nvml' | 'cuda'

export interface HelperRequest {
  readonly id: number
  readonly op: string
  readonly pid?: number
  readonly timeoutMs?: number
  /** MiB by GPU. */
  readonly mibs?: readonly Mib[]
  readonly freshMib?: Mib
}

export type HelperAnswer =
  { readonly id: number; readonly value: unknown } | { readonly id: number; readonly fault: FaultReport }

/** A line for the log, outside of any answer. */
export interface HelperNote {
  readonly note: string
}

/**
 * - `ffi_missing`: koffi is not installed or does not load here.
 * - `library_missing`: the driver's library cannot be loaded.
 * - `function_missing`: the library is too old.
 * - `driver`: a call returned an error; `code` says which.
 * - `arena`: the swap arena cannot be used, or does not have the bytes of the process.
 * - `not_traceable`: the server may not trace the process.
 * - `timeout`: no answer in time; the helper was ended.
 * - `lost`: the helper ended during the call.
 */
export type FaultKind =
  | 'ffi_missing'
  | 'library_missing'
  | 'function_missing'
  | 'driver'
  | 'arena'
  | 'not_traceable'
  | 'timeout'
  | 'lost'

export interface FaultReport {
  readonly kind: FaultKind
  /** One line. */
  readonly message: string
  readonly code: number | null
}

export class HelperFault extends Error {
  override readonly name = 'HelperFault'
  readonly kind: FaultKind
  readonly code: number | null

  constructor(report: FaultReport) {
    super(report.message)
    this.kind = report.kind
    this.code = report.code
  }
}

export function arenaFault(why: string): HelperFault {
  return new HelperFault({ kind: 'arena', message: `swap arena: ${why}`, code: null })
}
