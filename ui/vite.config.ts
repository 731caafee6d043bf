import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, defineConfig, type HtmlTagDescriptor, type Plugin, type Rolldown } from 'vite'
import solid from 'vite-plugin-solid'

const ROOT = resolve(import.meta.dirname, '..')
const OUT = resolve(ROOT, process.env['DIST'] ?? 'dist', 'ui')

/**
 * Beside each script and style stands what is sent to whoever takes it packed: over plain HTTP that is gzip,
 * browsers take no other there.
 */
function packed(): Plugin {
  return {
    name: 'packed',
    apply: 'build',
    closeBundle() {
      const assets = join(OUT, 'assets')
      for (const name of readdirSync(assets).filter((each) => /\.(js|css)$/.test(each))) {
        writeFileSync(join(assets, `${name}.gz`), gzipSync(readFileSync(join(assets, name)), { level: 9 }))
      }
    },
  }
}

/**
 * The script that stands before all others, with all that it needs in it: shared with the rest it would have
 * to wait for more files.
 */
function early(): Plugin {
  return {
    name: 'early',
    apply: 'build',
    async buildStart() {
      const built = (await build({
        configFile: false,
        logLevel: 'warn',
        build: {
          write: false,
          target: 'es2022',
          lib: { entry: join(import.meta.dirname, 'early.ts'), formats: ['iife'], name: 'early' },
        },
      })) as Rolldown.RolldownOutput[]
      this.emitFile({ type: 'asset', name: 'early.js', source: built[0]?.output[0].code ?? '' })
    },
    transformIndexHtml: {
      order: 'post',
      handler(_html, { bundle = {} }): HtmlTagDescriptor[] {
        const script = Object.values(bundle).find(
          (file) => file.type === 'asset' && file.names.includes('early.js'),
        )
        if (script === undefined) throw new Error('the early script was not built')
        return [
          { tag: 'script', attrs: { src: `/${script.fileName}`, async: true }, injectTo: 'head-prepend' },
        ]
      },
    },
  }
}

/**
 * The page is served by the controller under a policy that allows its own files and nothing else, so nothing
 * is put into the markup.
 */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [solid(), early(), packed()],
  worker: { format: 'es' },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    // One style for all pages: the helper of split ones does not ask again for a style that could not be
    // fetched.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    // On a slow machine it would say which plugin was slow, to somebody who only wants the page.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  server: { proxy: { '/api': process.env['HEADROOM_URL'] ?? 'http://127.0.0.1:30080' } },
})
