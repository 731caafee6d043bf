/**
 * Compares a store with its mark, to check that everything acknowledged is still there (docs/decisions/0079).
 */
import { EMPTY_CHAIN } from '../../ports/store.ts'
import type { FoundMark } from './mark-file.ts'
import { markText, type FileMark } from './store-mark.ts'

/** Extent of the data in a store. */
export interface StorePosition extends Omit<FileMark, 'storeId' | 'chain'> {
  /** Null: the schema is older than the chain. */
  readonly chain: string | null
  /** Null: the schema is older than the id. */
  readonly storeId: string | null
  readonly isMarked: boolean
  readonly supersedes: string | null
  /** Time of the last event, milliseconds since the Unix epoch; null without events. */
  readonly lastEventAt: number | null
}

export type Continuity =
  | { readonly is: 'complete' }
  /** `why` is a sentence; `mark` is the text that accepts the loss; no known epoch is above `epoch`. */
  | { readonly is: 'broken'; readonly why: string; readonly mark: string; readonly epoch: number }

/**
 * One line: what is missing, and the options. @param accepted a named mark that does not match; null: none
 */
export function refusal(
  { why, mark }: Continuity & { readonly is: 'broken' },
  accepted: string | null = null,
): string {
  const other = accepted === null ? '' : ` --accept-loss ${accepted} does not match the mark.`
  return (
    `${why}.${other} Put back the complete files, or restore a backup (headroom restore), or start ` +
    `once with --accept-loss ${mark}.`
  )
}

/** The hash of a kept event, in hex; null: retention has removed it; undefined: there is no such event. */
export type LinkAt = (eventSeq: number) => string | null | undefined

/**
 * @param name of the store, for messages
 * @param markFile path of the file of the mark
 * @param found the mark; while a controller runs it must be read before the position
 */
export function compareWithMark(
  { name, markFile }: { readonly name: string; readonly markFile: string },
  position: StorePosition,
  found: FoundMark,
  linkAt: LinkAt,
): Continuity {
  switch (found.is) {
    case 'absent':
      return position.isMarked ? unmarked(name, markFile, position, 'is gone') : { is: 'complete' }
    case 'damaged':
      return position.isMarked ? unmarked(name, markFile, position, 'is damaged') : { is: 'complete' }
    case 'there':
      return compare(name, position, found.slot.mark, linkAt)
  }
}

/** The former content is unknown: an operator must decide. */
function unmarked(name: string, markFile: string, position: StorePosition, what: string): Continuity {
  const why =
    `${markFile} ${what}, so that it is not known whether ${name} still holds ` +
    'everything that was acknowledged'
  return {
    is: 'broken',
    why,
    mark: `no-mark-${markText({ ...position, chain: position.chain ?? EMPTY_CHAIN })}`,
    epoch: position.epoch,
  }
}

function compare(name: string, position: StorePosition, mark: FileMark, linkAt: LinkAt): Continuity {
  const text = markText(mark)
  if (position.supersedes === text || isSuperseded(mark, position)) return { is: 'complete' }
  const difference = differenceOf(position, mark, linkAt)
  if (difference === null) return { is: 'complete' }
  return {
    is: 'broken',
    why: `${name} ${difference}`,
    mark: text,
    epoch: Math.max(position.epoch, mark.epoch),
  }
}

function missingEvents(first: number, last: number): string {
  return first === last
    ? `1 acknowledged event is missing, ${first}`
    : `${last - first + 1} acknowledged events are missing, ${first} to ${last}`
}

/**
 * An operator accepted the loss of what another controller had acknowledged in this epoch or a later one. The
 * epoch of a store rises with that.
 */
function isSuperseded({ epoch }: FileMark, position: StorePosition): boolean {
  const superseded = /^(?:no-mark-)?(\d+)-/.exec(position.supersedes ?? '')?.[1]
  return superseded !== undefined && epoch <= Number(superseded) && epoch < position.epoch
}

/** @returns what the store lacks, as part of a sentence; null: nothing */
function differenceOf(position: StorePosition, mark: FileMark, linkAt: LinkAt): string | null {
  const since =
    position.lastEventAt === null
      ? 'since its beginning'
      : `since ${new Date(position.lastEventAt).toISOString()}`
  const epochs =
    position.epoch === mark.epoch ? `epoch ${mark.epoch}` : `epochs ${position.epoch} to ${mark.epoch}`
  const missing = mark.eventSeq - position.eventSeq
  if (missing > 0) {
    return (
      `went back to an earlier state: ${missingEvents(position.eventSeq + 1, mark.eventSeq)} ` +
      `(${since}, ${epochs})`
    )
  }
  const commits = mark.commits - position.commits
  if (position.epoch < mark.epoch || commits > 0) {
    return (
      'went back to an earlier state: no event is missing, ' +
      `but ${Math.max(commits, 1)} acknowledged commits are (${since}, ${epochs})`
    )
  }
  if (position.storeId !== null && position.storeId !== mark.storeId)
    return `is another store than the one of ${text(mark)}: its history began elsewhere`
  if (isInHistory(mark, position, linkAt)) return null
  return (
    'has another history than was acknowledged: ' +
    `its event ${mark.eventSeq} is not the one of the mark (${since}, ${epochs})`
  )
}

function text(mark: FileMark): string {
  return `its mark ${markText(mark)}`
}

/**
 * After a crash the store may be ahead of its mark by unacknowledged data. An event removed by retention
 * cannot be compared.
 */
function isInHistory({ eventSeq, chain }: FileMark, position: StorePosition, linkAt: LinkAt): boolean {
  if (position.chain === null) return true
  if (eventSeq === position.eventSeq) return chain === position.chain
  const link = linkAt(eventSeq)
  return link === null || link === chain
}
