import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'
import solid from 'vite-plugin-solid'

const ROOT = resolve(import.meta.dirname, '..')
const OUT = resolve(ROOT, process.env['DIST'] ?? 'dist', 'ui')

/** Beside each script and style stands what is sent to whoever takes it packed: over plain HTTP that is gzip, browsers take no other there. */
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

/** The page is served by the controller under a policy that allows its own files and nothing else, so nothing is put into the markup. */
export default defineConfig({
  root: import.meta.dirname,
  plugins: [solid(), packed()],
  worker: { format: 'es' },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: { proxy: { '/api': process.env['HEADROOM_URL'] ?? 'http://127.0.0.1:30080' } },
})
