/** Messages between the main thread and a worker thread of a store. Rows only, no records. */
import type { BatchRows } from './rows.ts'

/** The first and the last request of each thread. */
export type FrameRequest = { readonly op: 'open' } | { readonly op: 'close' }

/** Requests to the writer's thread. All batches of one `commit` form one transaction, in order. */
export interface WriterRequest {
  readonly op: 'commit'
  readonly batches: readonly BatchRows[]
}

/** Answers of the writer's thread. */
export interface WriterAnswers {
  readonly commit: null
}

export interface Numbered<R> {
  readonly number: number
  readonly request: R
}

/** A message that a thread sends without a request. */
export interface Note<N = unknown> {
  readonly note: N
}

export type Reply =
  | { readonly number: number; readonly ok: true; readonly value: unknown }
  /** `isGone`: the thread could not open the file and has ended. */
  | { readonly number: number; readonly ok: false; readonly fault: string; readonly isGone: boolean }
