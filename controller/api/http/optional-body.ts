/**
 * Bodies that may be left out: what some routes are asked to do may be asked without saying how. Their
 * schemas say that nothing has to stand in them (`minProperties: 0`).
 */

/** Marks the schema of an optional body. */
export const MAY_BE_LEFT_OUT = { minProperties: 0 } as const

export function mayBeLeftOut(body: unknown): boolean {
  return (
    typeof body === 'object' &&
    body !== null &&
    'minProperties' in body &&
    body.minProperties === MAY_BE_LEFT_OUT.minProperties
  )
}

interface Document {
  readonly paths?: Readonly<Record<string, { readonly post?: { requestBody?: object } } | undefined>>
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> }
}

interface RequestBody {
  required?: boolean
  readonly content: Readonly<Record<string, { readonly schema?: { readonly $ref?: string } }>>
}

/** Says so in the OpenAPI document, which has every body as required. */
export function markOptionalBodies(document: Document): void {
  for (const path of Object.values(document.paths ?? {})) {
    const body = path?.post?.requestBody as RequestBody | undefined
    const schema = body?.content['application/json']?.schema
    if (body === undefined || schema === undefined) continue
    const shared =
      schema.$ref === undefined ? schema : document.components?.schemas?.[schema.$ref.split('/').at(-1) ?? '']
    if (mayBeLeftOut(shared)) body.required = false
  }
}
