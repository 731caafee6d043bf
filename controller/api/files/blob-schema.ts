import { Type, type Static } from 'typebox'
import { SHA_256 } from '../../../protocol/fields.ts'
import { closed, count } from '../http/fields-schema.ts'

const MAX_HASHES = 1_000

const SHA_256_TEXT = { pattern: SHA_256.pattern, 'x-allowed': SHA_256.description }

export const BlobPathSchema = Type.Object({
  hash: Type.String({ ...SHA_256_TEXT, description: 'SHA-256 of the body, in hexadecimal digits' }),
})
export const BlobSchema = Type.Object({
  sha256: Type.String(),
  bytes: count('Its size'),
})
export const HashesSchema = closed(
  {
    sha256: Type.Array(Type.String(SHA_256_TEXT), {
      maxItems: MAX_HASHES,
      description: 'SHA-256 of each chunk that the client has',
    }),
  },
  { examples: [{ sha256: ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'] }] },
)
export const MissingSchema = Type.Object({
  sha256: Type.Array(Type.String(), {
    description: 'Chunks to upload, in the order of the request',
  }),
})
export type MissingBody = Static<typeof MissingSchema>
export type BlobBody = Static<typeof BlobSchema>
