package org.example

import groovy.transform.CompileStatic

@CompileStatic
class Release {
    String name
    List<String> notes = []

    /** Adds a note. */
    void note(String text) {
        notes << text.trim()
        println "noted ${text}"
    }

    static Release parse(File file) {
        def release = new Release(name: file.name)
        file.eachLine { release.note(it) }
        return release
    }
}

def publish(Release release) {
    println "publishing ${release.name}"
    release.notes.each { println it }
}
