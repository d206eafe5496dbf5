package org.example.cache;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A cache that forgets what was not used for longest.
 */
@Deprecated
public class LruCache<K, V> extends LinkedHashMap<K, V> implements Cache<K, V> {
    private static final long serialVersionUID = 1L;
    private final int capacity;

    public LruCache(int capacity) {
        super(16, 0.75f, true);
        this.capacity = capacity;
    }

    /** The value, or null. */
    @Override
    public V get(Object key) {
        hits++;
        return super.get(key);
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
        return size() > capacity;
    }

    enum Policy {
        LRU,
        FIFO;

        boolean usesTime() {
            return this == LRU;
        }
    }

    interface Listener<K> {
        void evicted(K key);
    }
}

record Point(int x, int y) {
    Point {
        if (x < 0) throw new IllegalArgumentException();
    }
}
