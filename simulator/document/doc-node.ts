/** The text of a scenario as scalars, lists and maps with their positions. */

export type DocNode = DocScalar | DocList | DocMap | DocBroken

interface Placed {
  /** In UTF-16 code units from the start of the text. */
  readonly offset: number
  /** Number of values in the node, including itself and aliased values. */
  readonly size: number
  /** Nesting depth of lists and maps, including the node itself. */
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

/** Replaces a value with a reported problem; no further problems are reported for it. */
export interface DocBroken extends Placed {
  readonly kind: 'broken'
}

export interface DocEntry {
  readonly keyOffset: number
  readonly value: DocNode
}
