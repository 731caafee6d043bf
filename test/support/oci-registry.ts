/**
 * A registry of container images over HTTP on the loopback interface, with a login or without: what an engine
 * needs to pull an image of one layer by tag or digest, and to push images of its own.
 */
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { gunzipSync } from 'node:zlib'

/** For a test that has the network to itself; its engine must speak HTTP there. */
export const REGISTRY_PORTS = [5_000, 5_001, 5_002] as const

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json'
const CONFIG = 'application/vnd.docker.container.image.v1+json'
const LAYER = 'application/vnd.docker.image.rootfs.diff.tar.gzip'
const MAX_LAYER_BYTES = 64 * 1024 * 1024

export interface OciRegistryOptions {
  readonly port: number
  /** The content of the image that `push` makes. */
  readonly root?: string
  /** USER:PASSWORD; absent: no login is needed. */
  readonly login?: string
}

interface Blob {
  readonly bytes: Buffer
  readonly type: string
}

export class OciRegistry {
  readonly #options: OciRegistryOptions
  readonly #blobs = new Map<string, Blob>()
  readonly #tags = new Map<string, string>()
  readonly #uploads = new Map<string, Buffer>()
  #server: Server | null = null
  #released: Promise<void> = Promise.resolve()
  /** Paths of its answers with status 200. */
  readonly served: string[] = []

  constructor(options: OciRegistryOptions) {
    this.#options = options
  }

  start(): Promise<void> {
    this.#server = createServer((request, response) => void this.#answer(request, response))
    return new Promise((resolve, reject) => {
      this.#server?.once('error', reject)
      this.#server?.listen(this.#options.port, '127.0.0.1', () => resolve())
    })
  }

  async end(): Promise<void> {
    this.#server?.closeAllConnections()
    await new Promise((resolve) => (this.#server === null ? resolve(null) : this.#server.close(resolve)))
  }

  /** @returns the digest of the image */
  push(name: string, tag: string): string {
    const layer = execFileSync('sh', ['-c', 'tar c -C "$0" . | gzip -1', this.#options.root ?? ''], {
      maxBuffer: MAX_LAYER_BYTES,
    })
    const config = Buffer.from(
      JSON.stringify({
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
        os: 'linux',
        config: { WorkingDir: '/tmp', Env: ['PATH=/bin'] },
        rootfs: { type: 'layers', diff_ids: [digestOf(gunzipSync(layer))] },
      }),
    )
    const about = (bytes: Buffer, mediaType: string) => ({
      mediaType,
      size: bytes.length,
      digest: this.#keep(bytes, mediaType),
    })
    const parts = { config: about(config, CONFIG), layers: [about(layer, LAYER)] }
    const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: MANIFEST, ...parts }))
    const digest = this.#keep(manifest, MANIFEST)
    this.#tags.set(`${name}:${tag}`, digest)
    return digest
  }

  /** Of the image that the tag names; null: no image has it. */
  digestOf(name: string, tag: string): string | null {
    return this.#tags.get(`${name}:${tag}`) ?? null
  }

  /** Layers are not answered until the returned function is called. */
  hold(): () => void {
    let release = (): void => {}
    this.#released = new Promise((resolve) => (release = resolve))
    return release
  }

  #keep(bytes: Buffer, type: string): string {
    const digest = digestOf(bytes)
    this.#blobs.set(digest, { bytes, type })
    return digest
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url: path = '', method, headers } = request
    const { login } = this.#options
    if (login !== undefined && headers.authorization !== `Basic ${Buffer.from(login).toString('base64')}`) {
      response.setHeader('WWW-Authenticate', 'Basic realm="registry"')
      return fail(response, 401, 'UNAUTHORIZED', 'authentication required')
    }
    response.setHeader('Docker-Distribution-Api-Version', 'registry/2.0')
    if (path === '/v2/') return void response.end('{}')
    if (method !== 'GET' && method !== 'HEAD') return this.#take(request, response)
    const [, name = '', kind, id = ''] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(path) ?? []
    const digest = id.startsWith('sha256:') ? id : (this.#tags.get(`${name}:${id}`) ?? '')
    const blob = this.#blobs.get(digest)
    if (blob === undefined) return fail(response, 404, 'MANIFEST_UNKNOWN', `manifest unknown`)
    if (kind === 'blobs' && blob.type === LAYER) await this.#released
    this.served.push(`${method ?? ''} ${path}`)
    response.writeHead(200, {
      'Content-Type': blob.type,
      'Content-Length': blob.bytes.length,
      'Docker-Content-Digest': digest,
    })
    response.end(method === 'HEAD' ? undefined : blob.bytes)
  }

  /** A push: parts of blobs, then the manifest that names them. */
  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '', method, headers } = request
    const { pathname, searchParams } = new URL(url, 'http://registry')
    const bytes = await bodyOf(request)
    const [, name = '', tag = ''] = /^\/v2\/(.+)\/manifests\/([^/]+)$/.exec(pathname) ?? []
    if (method === 'PUT' && name !== '') {
      const digest = this.#keep(bytes, headers['content-type'] ?? MANIFEST)
      this.#tags.set(`${name}:${tag}`, digest)
      return void response.writeHead(201, { 'Docker-Content-Digest': digest, Location: pathname }).end()
    }
    const [, at = '', upload = ''] = /^(\/v2\/.+\/blobs\/uploads)\/(\w*)$/.exec(pathname) ?? []
    if (at === '') return fail(response, 404, 'UNSUPPORTED', 'unknown upload')
    const id = upload === '' ? randomBytes(8).toString('hex') : upload
    const whole = Buffer.concat([this.#uploads.get(id) ?? Buffer.alloc(0), bytes])
    const digest = searchParams.get('digest')
    if (digest === null) {
      this.#uploads.set(id, whole)
      const range = `0-${Math.max(0, whole.length - 1)}`
      const about = { Location: `${at}/${id}`, Range: range, 'Docker-Upload-UUID': id }
      return void response.writeHead(202, about).end()
    }
    this.#uploads.delete(id)
    if (this.#keep(whole, LAYER) !== digest) return fail(response, 400, 'DIGEST_INVALID', 'other content')
    response.writeHead(201, { 'Docker-Content-Digest': digest, Location: pathname }).end()
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > MAX_LAYER_BYTES) throw new Error('the upload is too large')
    parts.push(part)
  }
  return Buffer.concat(parts)
}

function fail(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ errors: [{ code, message }] }))
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}
