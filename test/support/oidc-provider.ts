/**
 * An OpenID Connect provider behind a real socket: discovery, authorization code with PKCE, ID tokens signed
 * with RS256.
 */
import { createHash, generateKeyPairSync, randomUUID, sign, type KeyObject } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Grant {
  readonly nonce: string
  readonly challenge: string
  readonly redirectUri: string
}

export class OidcProvider {
  readonly clientId = 'headroom'
  readonly clientSecret = 'the-secret-of-the-client'
  /** The claims of the ID token; tests change them. */
  claims: Record<string, unknown> = { sub: 'u1', email: 'ada@example.org', groups: ['gpu-operators'] }
  /** The user declines, so no code is issued. */
  refuses = false
  /** The UserInfo response, or null if the provider has no such endpoint. */
  userInfo: Record<string, unknown> | null = null
  /** Overrides of valid values, for tokens that must be refused. */
  lie: { nonce?: string; audience?: string; issuer?: string; expiresInSeconds?: number; isForged?: boolean } =
    {}
  readonly #server: Server
  readonly #keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
  readonly #otherKeys = generateKeyPairSync('rsa', { modulusLength: 2048 })
  readonly #grants = new Map<string, Grant>()

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response))
  }

  static async start(): Promise<OidcProvider> {
    const provider = new OidcProvider()
    await new Promise<void>((resolve) => provider.#server.listen(0, '127.0.0.1', resolve))
    return provider
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.issuer)
    if (url.pathname === '/.well-known/openid-configuration') return json(response, 200, this.#metadata())
    if (url.pathname === '/jwks') return json(response, 200, { keys: [jwkOf(this.#keys.publicKey)] })
    if (url.pathname === '/authorize') return this.#authorize(url.searchParams, response)
    if (url.pathname === '/userinfo' && this.userInfo !== null) return json(response, 200, this.userInfo)
    if (url.pathname === '/token') return this.#token(new URLSearchParams(await textOf(request)), response)
    json(response, 404, { error: 'not_found' })
  }

  #metadata() {
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      ...(this.userInfo === null ? {} : { userinfo_endpoint: `${this.issuer}/userinfo` }),
      jwks_uri: `${this.issuer}/jwks`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      code_challenge_methods_supported: ['S256'],
    }
  }

  #authorize(query: URLSearchParams, response: ServerResponse): void {
    const redirectUri = query.get('redirect_uri') ?? ''
    const back = new URL(redirectUri)
    back.searchParams.set('state', query.get('state') ?? '')
    if (this.refuses) back.searchParams.set('error', 'access_denied')
    else {
      const code = randomUUID()
      this.#grants.set(code, {
        nonce: query.get('nonce') ?? '',
        challenge: query.get('code_challenge') ?? '',
        redirectUri,
      })
      back.searchParams.set('code', code)
    }
    response.writeHead(302, { location: back.href }).end()
  }

  #token(form: URLSearchParams, response: ServerResponse): void {
    const grant = this.#grants.get(form.get('code') ?? '')
    this.#grants.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isClient =
      form.get('client_id') === this.clientId && form.get('client_secret') === this.clientSecret
    if (!isClient) return json(response, 401, { error: 'invalid_client' })
    if (
      grant === undefined ||
      grant.challenge !== challenge ||
      grant.redirectUri !== form.get('redirect_uri')
    ) {
      return json(response, 400, { error: 'invalid_grant' })
    }
    json(response, 200, {
      access_token: randomUUID(),
      token_type: 'Bearer',
      id_token: this.#idToken(grant.nonce),
    })
  }

  #idToken(nonce: string): string {
    const now = Math.floor(Date.now() / 1000)
    const { lie } = this
    const header = encoded({ alg: 'RS256', kid: 'k1', typ: 'JWT' })
    const body = encoded({
      iss: lie.issuer ?? this.issuer,
      aud: lie.audience ?? this.clientId,
      nonce: lie.nonce ?? nonce,
      iat: now - 10,
      exp: now + (lie.expiresInSeconds ?? 300),
      ...this.claims,
    })
    const key = lie.isForged === true ? this.#otherKeys.privateKey : this.#keys.privateKey
    return `${header}.${body}.${sign('sha256', Buffer.from(`${header}.${body}`), key).toString('base64url')}`
  }
}

function jwkOf(key: KeyObject): object {
  return { ...key.export({ format: 'jwk' }), kid: 'k1', use: 'sig', alg: 'RS256' }
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
