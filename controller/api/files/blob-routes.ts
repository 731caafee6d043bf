/**
 * PUT /blobs/{hash} and POST /blobs/missing: chunks and manifests of folders that tasks of the caller start
 * with (`workdir` of POST /tasks).
 */
import type { Readable } from 'node:stream'
import { CHUNK_BYTES } from '../../../protocol/limits.ts'
import type { Blobs } from '../../ports/blobs.ts'
import { callerOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem, invalidField } from '../http/errors.ts'
import { operation, takesFile } from '../http/operation.ts'
import { BlobPathSchema, BlobSchema, HashesSchema, MissingSchema } from './blob-schema.ts'

const putBlob = takesFile(
  operation(
    {
      operationId: 'putBlob',
      role: 'submitter',
      routine: true,
      summary: 'Upload a chunk or the manifest of a folder',
      description:
        'The body is the content, of any content type, up to 4 MiB. The content belongs to the caller: ' +
        'other callers must upload the same content again. It is stored while an open task needs it, and ' +
        'for an hour after its last use.',
      tags: ['tasks'],
      params: BlobPathSchema,
      response: { 200: BlobSchema, 201: BlobSchema },
    },
    ['conflict', 'body_too_large', 'uploads_full', 'store_failed'],
  ),
)

const findMissing = operation(
  {
    operationId: 'findMissingBlobs',
    role: 'submitter',
    routine: true,
    summary: 'Find the chunks that the caller has not uploaded',
    description: 'Chunks that are not in the response are stored for another hour.',
    tags: ['tasks'],
    body: HashesSchema,
    response: { 200: MissingSchema },
  },
  ['conflict', 'store_failed'],
)

/** Bodies that are received at the same time: each is in memory until it is stored. */
const MAX_BODIES = 32

export function blobRoutes(app: ApiApp, { blobs }: ApiContext): void {
  let bodies = 0

  app.post('/blobs/missing', { schema: findMissing }, async (request) => ({
    sha256: [...(await blobsOf(blobs).missing(callerOf(request).name, request.body.sha256))],
  }))

  void app.register(async (scope: ApiApp) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
    scope.put('/blobs/:hash', { schema: putBlob }, async (request, reply) => {
      const { hash: sha256 } = request.params
      const { name: owner } = callerOf(request)
      if (bodies >= MAX_BODIES)
        throw new ApiProblem('too_many_requests', 'Too many uploads are in progress. Try again in 1 s.', {
          headers: { 'retry-after': '1' },
        })
      bodies += 1
      try {
        const content = await received(request.body as Readable | undefined)
        const stored = await blobsOf(blobs).put(owner, sha256, content)
        if (!stored.ok) {
          const { code, detail } = stored.refusal
          throw code === 'invalid' ? invalidField('', detail) : new ApiProblem(code, detail)
        }
        reply.code(stored.isNew ? 201 : 200)
        return { sha256, bytes: content.byteLength }
      } finally {
        bodies -= 1
      }
    })
  })
}

/** @throws ApiProblem where there are no files: in a simulated world */
function blobsOf(blobs: Blobs | null): Blobs {
  if (blobs === null) throw new ApiProblem('conflict', 'A simulated cluster has no task files.')
  return blobs
}

async function received(body: Readable | undefined): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  // A refusal in the middle of the upload still needs a response.
  for await (const part of body?.iterator({ destroyOnReturn: false }) ?? []) {
    bytes += (part as Buffer).length
    if (bytes > CHUNK_BYTES)
      throw new ApiProblem('body_too_large', `The body exceeds the limit of ${CHUNK_BYTES} bytes.`)
    parts.push(part as Buffer)
  }
  return Buffer.concat(parts)
}

/** @throws ApiProblem for a folder that the caller has not uploaded as a whole */
export async function requireWorkdir(
  blobs: Blobs | null,
  workdir: string | null | undefined,
  owner: string | null,
): Promise<void> {
  if (workdir === null || workdir === undefined) return
  const why = await blobsOf(blobs).whyUnusable(owner, workdir)
  if (why !== null) throw invalidField('/workdir', `workdir ${why}`)
}
