/** A scenario's text as scalars, lists and maps, each with its place in the text. */

export type DocNode = DocScalar | DocList | DocMap | DocBroken

interface Placed {
  /** In UTF-16 code units from the start of the text. */
  readonly offset: number
  /** Values in it, itself and those behind aliases included. */
  readonly size: number
  /** Lists and maps inside each other, itself included. */
  readonly height: number
}

export interface DocScalar extends Placed {
  readonly kind: 'scalar'
  readonly value: string | number | boolean | null
}

export interface DocList extends Placed {
  readonly kind: 'list'
  readonly items: readonly DocNode[]
}

export interface DocMap extends Placed {
  readonly kind: 'map'
  readonly entries: ReadonlyMap<string, DocEntry>
}

/** Stands where a problem has been reported; whatever is expected there, nothing more is said about it. */
export interface DocBroken extends Placed {
  readonly kind: 'broken'
}

export interface DocEntry {
  readonly keyOffset: number
  readonly value: DocNode
}
