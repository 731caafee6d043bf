/**
 * The npm package oidc-provider without changes: by OpenID Connect Core 5.4 its ID tokens contain no e-mail
 * and no groups, which are at UserInfo. It runs behind a real socket, with the package's own sign-in pages,
 * and a browser that fills them in.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'

export interface StandardProviderOptions {
  readonly redirectUri: string
  /** Claims of each user by login name. */
  readonly people: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export class StandardOidcProvider {
  readonly clientId = 'headroom'
  readonly clientSecret = 'the-secret-of-the-client'
  readonly issuer: string
  readonly #server: Server

  private constructor(server: Server, issuer: string) {
    this.#server = server
    this.issuer = issuer
  }

  static async start({ redirectUri, people }: StandardProviderOptions): Promise<StandardOidcProvider> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const found = new StandardOidcProvider(
      server,
      `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    )
    const provider = new Provider(found.issuer, {
      clients: [
        {
          client_id: found.clientId,
          client_secret: found.clientSecret,
          redirect_uris: [redirectUri],
          token_endpoint_auth_method: 'client_secret_post',
        },
      ],
      claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
      cookies: { keys: ['a key for tests'] },
      findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
    })
    server.on('request', (request, response) => void provider.callback()(request, response))
    return found
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  /**
   * Passes through the provider's pages as a user with a browser does. Returns the address that leads back to
   * the client.
   */
  async signIn(authorizationUrl: string, name: string, clientOrigin: string): Promise<URL> {
    const cookies = new Map<string, string>()
    let [url, form]: [URL, URLSearchParams | null] = [new URL(authorizationUrl), null]
    for (let step = 0; step < MAX_STEPS; step++) {
      if (url.origin === clientOrigin) return url
      const response: Response = await fetch(url, {
        method: form === null ? 'GET' : 'POST',
        body: form,
        redirect: 'manual',
        headers: { cookie: [...cookies].map(([key, value]) => `${key}=${value}`).join('; ') },
      })
      for (const cookie of response.headers.getSetCookie()) {
        const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
        cookies.set(key, value)
      }
      const text = await response.text()
      const location = response.headers.get('location')
      if (location !== null) [url, form] = [new URL(location, url), null]
      else {
        const action = /<form[^>]* action="([^"]+)"/.exec(text)?.[1]
        const prompt = /name="prompt" value="([^"]+)"/.exec(text)?.[1]
        if (action === undefined || prompt === undefined)
          throw new Error(`a page without a form: ${response.status} ${text.slice(0, 500)}`)
        ;[url, form] = [new URL(action, url), new URLSearchParams({ prompt, login: name, password: 'any' })]
      }
    }
    throw new Error('the provider leads in a circle')
  }
}

const MAX_STEPS = 12
