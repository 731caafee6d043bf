/**
 * The mark: the extent of the store when it last acknowledged something. It is kept in a file outside the
 * database, so that a store that lost a part of its history is detected (docs/decisions/0079).
 */
import { hash } from 'node:crypto'
import type { StoreMark } from '../../ports/store.ts'

export interface FileMark extends StoreMark {
  /** Id of its store: 32 hexadecimal digits. */
  readonly storeId: string
  /**
   * Number of transactions of the store. They cover changes without events: tokens, audit entries, epochs.
   */
  readonly commits: number
}

/** One copy of the mark in its file, at a time, milliseconds since the Unix epoch. */
export interface MarkSlot {
  /** Counts the writes; the slot with the higher number is newer. */
  readonly generation: number
  readonly at: number
  readonly mark: FileMark
}

/** Each of the two slots is within its own page: a torn write leaves the other slot intact. */
export const SLOT_BYTES = 4096
const TEXT_BYTES = 512
const SUM_DIGITS = 16
const CHAIN_DIGITS = 12

/** The text by which an operator names a mark. */
export function markText({ epoch, eventSeq, commits, chain }: Omit<FileMark, 'storeId'>): string {
  return `${epoch}-${eventSeq}-${commits}-${chain.slice(0, CHAIN_DIGITS)}`
}

/** One line of text with its checksum. */
export function encodeSlot({ generation, at, mark }: MarkSlot): Buffer {
  const { storeId, epoch, eventSeq, commits, chain } = mark
  const json = JSON.stringify({
    v: 1,
    generation,
    at,
    store: storeId,
    epoch,
    event: eventSeq,
    commits,
    chain,
  })
  return Buffer.from(`${`${json} ${sumOf(json)}`.padEnd(TEXT_BYTES - 1)}\n`)
}

/** Returns null if the mark is missing or damaged. */
export function decodeSlot(bytes: Buffer): MarkSlot | null {
  const text = bytes.toString('latin1', 0, TEXT_BYTES).trimEnd()
  const json = text.slice(0, -SUM_DIGITS - 1)
  if (json === '' || text !== `${json} ${sumOf(json)}`) return null
  const { generation, at, store, epoch, event, commits, chain } = JSON.parse(json) as Readonly<
    Record<string, unknown>
  >
  const mark = { storeId: store, epoch, eventSeq: event, commits, chain } as FileMark
  return { generation: generation as number, at: at as number, mark }
}

function sumOf(text: string): string {
  return hash('sha256', text, 'hex').slice(0, SUM_DIGITS)
}
